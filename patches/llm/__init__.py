"""Patches that a language model writes, and the gates they have to pass."""
