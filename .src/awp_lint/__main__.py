"""``python -m awp_lint`` is the ``awp-lint`` command."""

from awp_lint.detector.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
