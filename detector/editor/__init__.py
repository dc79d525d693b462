"""Findings while code is being written: a language server and a watch for the terminal."""
