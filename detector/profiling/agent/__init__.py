"""The agent: the part of the tool that lives inside the user's program.

It times marked statements and traces slices of the run, and is otherwise not there: nothing but the standard library is
imported (torch only once the program has), no fault is ever raised into the program, and every one is recorded. The
syntax is valid on Python 3.9. How it gets in is :mod:`inject/sitecustomize`; what it leaves behind is a folder per
process, described in :mod:`awp_lint.detector.profiling.agent.files`.
"""
