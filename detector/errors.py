"""Errors that end the command with one line for a person and exit code 2."""

from __future__ import annotations


class UsageError(Exception):
    """Wrong use: an unknown option value, a broken settings file, a command that could not start."""
