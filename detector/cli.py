"""The ``awp-lint`` command: from the command line to an exit code.

Nothing heavy is imported here: ``--version`` and ``--help`` need the standard library alone.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from awp_lint.detector.errors import EXIT_ERROR, UsageError


def script() -> NoReturn:
    """The command as a program of its own. Its end leaves alone what a scan has in memory: to look through it for
    garbage once more takes seconds after a large one."""
    code = main()
    gc.freeze()
    raise SystemExit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; every error is one line on standard error."""
    from awp_lint.detector.options import build_parser, check_combinations, split_agent, split_command

    try:
        words = sys.argv[1:] if argv is None else argv
        asleep = split_agent(words)
        if asleep is not None:
            from awp_lint.detector.profiling.attach import run_with_agent

            run_with_agent(asleep)
        own, command = split_command(words)
        options = build_parser().parse_args(own)
        check_combinations(options, command)
        from awp_lint.detector.commands import run

        return run(options, command)
    except UsageError as error:
        print(f"awp-lint: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("awp-lint: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader (head, less) has gone: nothing more to say to it, and nothing to flush at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except Exception:
        import traceback

        traceback.print_exc()  # a fault of ours must not look like findings
        print("awp-lint: internal error: please report it with the lines above", file=sys.stderr)
        return EXIT_ERROR
