"""Optional advice of a language model on findings: what it says is checked, what it writes is never trusted."""
