"""From a rule's edits to a diff: merge, splice, rank, write."""

# A bare `import patches` from the repository root would load a second copy of every class.
if __name__ != "awp_lint.patches":
    raise ImportError(f"import awp_lint.patches, not {__name__}")
