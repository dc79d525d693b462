"""The rule catalogue: a package a family, a module a rule."""

# A bare `import rules` from the repository root would load a second copy of every class.
if __name__ != "awp_lint.rules":
    raise ImportError(f"import awp_lint.rules, not {__name__}")
