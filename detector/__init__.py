"""The engine: projects, semantics, profiling, verification and reports."""

# A bare `import detector` from the repository root would load a second copy of every class.
if __name__ != "awp_lint.detector":
    raise ImportError(f"import awp_lint.detector, not {__name__}")
