"""Fixed heads that reproduce a given sparse attention matrix."""
