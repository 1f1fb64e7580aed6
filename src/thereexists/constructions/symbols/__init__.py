"""Programs over symbols: a string in, a string out. The language, and how it is built (see docs/symbols.md)."""
