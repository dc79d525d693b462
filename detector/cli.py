"""The ``awp-lint`` command."""


def main() -> int:
    """Placeholder until the surface is written."""
    return 2
