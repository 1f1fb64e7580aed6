"""Programs over the reals: the language, and the compiler, one step per file."""
