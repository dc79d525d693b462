# mypy: ignore-errors
# Loaded by the interpreter's start-up because its folder stands first on PYTHONPATH. Valid on every Python, since any
# Python that the user's command starts will read it. It must leave no trace but the agent: its folder goes from the
# path, and the sitecustomize that it hides (some systems have one) runs as if this one were not there.
import os
import sys


def _leave():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    sys.path_importer_cache.pop(folder, None)


def _next():
    ours = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as fault:
        if getattr(fault, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        # The import machinery insists on finding the module that it is loading.
        sys.modules.setdefault("sitecustomize", ours)


def _start():
    root = os.environ.get("AWP_LINT_AGENT_ROOT")
    session = os.environ.get("AWP_LINT_AGENT_SESSION")
    if not root or not session or sys.version_info < (3, 9) or sys.implementation.name != "cpython":
        return
    try:
        if "awp_lint" not in sys.modules:
            from importlib.util import module_from_spec, spec_from_file_location

            spec = spec_from_file_location(
                "awp_lint", os.path.join(root, "__init__.py"), submodule_search_locations=[root]
            )
            package = module_from_spec(spec)
            sys.modules["awp_lint"] = package
            spec.loader.exec_module(package)
        from awp_lint.detector.profiling.agent import core

        core.start(session)
    except Exception:
        try:
            import traceback

            with open(os.path.join(session, "injection-%d.err" % os.getpid()), "a") as out:
                traceback.print_exc(file=out)
        except Exception:
            pass


try:
    _leave()
    _next()
finally:
    _start()
