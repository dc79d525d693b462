"""Programs behave under the agent as without it: same output, same exit code, on both back ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import counts, plan_of, pythons

from awp_lint.detector.profiling.launch import LaunchError, Plan, RunOptions, run_profiled
from awp_lint.detector.profiling.session import Session

# The folder ``behaviour`` runs much the same on this interpreter; here: the other back end's newest, and the oldest.
HERE = sys.version_info >= (3, 12)
OTHERS = [version for version in pythons() if (int(version.split(".")[1]) >= 12) is not HERE]
VERSIONS = list(dict.fromkeys([*OTHERS[-1:], next(iter(pythons()))]))

MARKED = "def marked(x):\n    return str(x)\n\n\nfor _ in range(30):\n    marked(1)\n"
WANTED = [("call", "str(x)", None), ("loop", "for _ in range(30)", "step")]


@pytest.fixture(params=VERSIONS[:1])
def python(request: pytest.FixtureRequest) -> str:
    return pythons()[request.param]


@pytest.fixture(params=VERSIONS)
def each_python(request: pytest.FixtureRequest) -> str:
    return pythons()[request.param]


class Both:
    """Runs a command without us and with us, and compares what there is to see."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capfd = capfd
        self.session: Session | None = None

    def write(self, source: str, name: str = "prog.py") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def plain(self, command: list[str], env: dict[str, str] | None = None) -> tuple[int, str, str]:
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=env, check=False)
        return done.returncode, done.stdout, done.stderr

    def ours(
        self, command: list[str], plan: Plan, env: dict[str, str] | None = None, whole: bool = False
    ) -> tuple[int | None, str, str]:
        self.capfd.readouterr()
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            options = RunOptions(directory=str(self.folder / "session"), env=env, whole=whole)
            self.session = run_profiled(command, plan, options)
        finally:
            os.chdir(before)
        out, err = self.capfd.readouterr()
        return self.session.exit_code, out, err

    def same(self, command: list[str], plan: Plan, env: dict[str, str] | None = None, whole: bool = False) -> Session:
        plain = self.plain(command, env)
        ours = self.ours(command, plan, env, whole)
        assert ours == plain
        assert self.session is not None
        for process in self.session.processes:
            assert not process.errors
        return self.session


@pytest.fixture
def both(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Both:
    return Both(tmp_path, capfd)


LOOK = """
import inspect, os, sys, threading, traceback, warnings
print(__name__, __file__, __spec__, __package__, type(__loader__).__name__, __doc__)
print(sorted(name for name in globals() if name != "__annotations__"))
print(sys.argv, sys.path[0], "inject" in "".join(sys.path), __builtins__.__name__)
print([thread.name for thread in threading.enumerate()], sys.gettrace(), sys.getprofile())
print(inspect.getsource(marked).splitlines()[0], marked.__code__.co_firstlineno, len(inspect.stack()) < 5)
try:
    marked_raises()
except NameError:
    print(traceback.format_exc())
warnings.simplefilter("always")
warnings.warn("look")
print(sys.excepthook is sys.__excepthook__, sys.flags, sys.dont_write_bytecode)
"""

ENDS = {
    "return": "print('end')",
    "exit 3": "import sys; sys.exit(3)",
    "exit text": "import sys; sys.exit('told')",
    "_exit 4": "import os; print('gone', flush=True); os._exit(4)",
    "uncaught": "def deep(n):\n    return 1 / n if n == 0 else deep(n - 1)\ndeep(2)",
    "chained": "try:\n    {}['a']\nexcept KeyError as fault:\n    raise ValueError('b') from fault",
    "interrupt": "raise KeyboardInterrupt",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)",
    "interrupted": "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)",
    "handled": (
        "import os, signal\nsignal.signal(signal.SIGTERM, lambda *a: (print('bye'), os._exit(9)))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\nmarked(2)\nmarked(3)"
    ),
    "own hook": (
        "import sys\nsys.excepthook = lambda kind, value, trace: print(kind, value, trace.tb_lineno, trace.tb_next)\n"
        "raise LookupError(1)"
    ),
    "atexit": "import atexit; atexit.register(lambda: print('last', marked(4)))",
    "thread fails": "import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
    "recursion": "def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError as e:\n    print(type(e))",
}


def test_surroundings(each_python: str, both: Both) -> None:
    path = both.write('"""Doc."""\nfrom __future__ import annotations\n' + MARKED + LOOK)
    plan, python = plan_of(path, WANTED), each_python
    session = both.same([python, str(path), "a", "--b", "c d"], plan)
    assert counts_reached(session) == {"str(x)", "for _ in range(30)"}
    both.same([python, "prog.py"], plan)
    both.same([python, "-u", "-W", "default", "-X", "utf8", "./prog.py", "-c", "-m"], plan)


def counts_reached(session: Session) -> set[str]:
    return {p.marks[mark].finding for p in session.processes for mark in p.reached}


@pytest.mark.parametrize("how", ["-m module", "-m package", "-c", "folder", "link", "stdin", "shell", "exec"])
def test_ways_to_start(python: str, both: Both, how: str) -> None:
    inner = MARKED + "import sys\nprint(__name__, sys.argv, sys.path[0], __spec__ and __spec__.name)\n"
    path = both.write(inner, {"-m package": "pack/__main__.py", "folder": "pack/__main__.py"}.get(how, "prog.py"))
    plan = plan_of(path, WANTED)
    if how == "-m package":
        both.write("", "pack/__init__.py")
    both.write("import prog\nprint(prog.marked(1))\n", "user.py")
    (both.folder / "link.py").symlink_to(path)
    commands = {
        "-m module": [python, "-m", "prog", "x"],
        "-m package": [python, "-m", "pack", "x"],
        "-c": [python, "-c", "import prog, sys; print(prog.marked(2), sys.argv)", "x"],
        "folder": [python, "pack", "x"],
        "link": [python, "link.py", "x"],
        "stdin": ["sh", "-c", f"echo 'import prog; print(prog.__name__)' | {python} - x"],
        "shell": ["sh", "-c", f"{python} prog.py x; {python} user.py; exit 5"],
        "exec": [python, "-c", f"import os; os.execv({python!r}, ['python', 'prog.py', 'x'])"],
    }
    session = both.same(commands[how], plan)
    assert counts_reached(session) == {"str(x)", "for _ in range(30)"}


@pytest.mark.parametrize("end", ENDS)
def test_ends(python: str, both: Both, end: str) -> None:
    path = both.write(MARKED + ENDS[end] + "\n")
    session = both.same([python, str(path)], plan_of(path, WANTED))
    assert counts_reached(session) == {"str(x)", "for _ in range(30)"}


def test_warnings_as_errors_and_development_mode(python: str, both: Both) -> None:
    path = both.write(
        MARKED + "import os, time\nfor turn in range(4):\n    for _ in range(20):\n        marked(time.sleep(0.01))\n"
        "    pid = os.fork()\n    if not pid:\n        os._exit(marked(7) != '7')\n    print(os.waitpid(pid, 0)[1])\n"
    )
    both.same([python, "-W", "error", "-X", "dev", str(path)], plan_of(path, WANTED))


CHILDREN = (
    "import multiprocessing, sys\n\n\ndef marked(x):\n    return str(x)\n\n\n"
    "def work(n):\n    for _ in range(30):\n        marked(n)\n    return marked(n) * n\n\n\n"
    "if __name__ == '__main__':\n    context = multiprocessing.get_context(sys.argv[1])\n"
    "    with context.Pool(2) as pool:\n        print(pool.map(work, range(6), chunksize=1))\n"
    "        pool.close()\n        pool.join()\n"
    "    child = context.Process(target=work, args=(1,))\n    child.start()\n    child.join()\n"
    "    failing = context.Process(target=sys.exit, args=(3,))\n    failing.start()\n    failing.join()\n"
    "    print(child.exitcode, failing.exitcode)\n"
)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(python: str, both: Both, method: str) -> None:
    path = both.write(CHILDREN)
    plan = plan_of(path, [("call", "str(x)", None), ("loop", "for _ in range(30)", "step")])
    session = both.same([python, str(path), method], plan, whole=True)
    # Six tasks and one process: 31 calls each, whoever ran them; workers that are killed count too.
    assert sum(counts(process)["str(x)"] for process in session.processes) == 7 * 31
    assert sum("for _ in range(30)" in counts_reached_by(process) for process in session.processes) >= 2


def counts_reached_by(process) -> set[str]:  # type: ignore[no-untyped-def]
    return {process.marks[mark].finding for mark in process.reached}


def test_forks_of_all_kinds(python: str, both: Both) -> None:
    path = both.write(
        MARKED + "import os, sys\nsys.stdout.flush()\n"
        "for kind in range(3):\n    pid = os.fork()\n    if not pid:\n        marked(kind)\n"
        "        if kind == 0:\n            os._exit(1)\n        if kind == 1:\n            sys.exit(2)\n"
        "        raise ValueError(kind)\n"
        "    print(os.waitpid(pid, 0)[1])\n"
        "import subprocess\n"
        "if __name__ == '__main__':\n"
        "    print(subprocess.run([sys.executable, '-c', 'import prog'], preexec_fn=lambda: None).returncode)\n"
    )
    session = both.same([python, str(path)], plan_of(path, WANTED), whole=True)
    assert sum(counts(process)["str(x)"] for process in session.processes) >= 30 + 3 + 30


def test_own_sitecustomize_and_names(python: str, both: Both) -> None:
    both.write("import sys\nsys.customized = True\n", "lib/sitecustomize.py")
    both.write("WORD = 'mine'\n", "lib/rules.py")
    both.write("WORD = 'mine too'\n", "lib/detector/__init__.py")
    both.write("from prog import *\nraise RuntimeError('not to be loaded')\n", "unused.py")
    path = both.write(
        MARKED + "import detector, rules, sys, sitecustomize\n"
        "print(sys.customized, rules.WORD, detector.WORD, sitecustomize.__file__, sys.path)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(both.folder / "lib")}
    both.same([python, str(path)], plan_of(path, WANTED), env=env)
    env = {**os.environ, "PYTHONPATH": ""}
    path.write_text(MARKED + "import sys\nprint(sys.path)\n")
    both.same([python, str(path)], plan_of(path, WANTED), env=env)


def test_failing_sitecustomize(python: str, both: Both) -> None:
    both.write("raise ValueError('theirs')\n", "lib/sitecustomize.py")
    path = both.write(MARKED)
    env = {**os.environ, "PYTHONPATH": str(both.folder / "lib")}
    session = both.same([python, str(path)], plan_of(path, WANTED), env=env)
    assert counts_reached(session)


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-Es"])
def test_injection_impossible(python: str, both: Both, flag: str) -> None:
    path = both.write(MARKED + "print('ran')\n")
    session = both.same([python, flag, str(path)], plan_of(path, WANTED))
    assert not session.processes
    assert len(session.notes) == 1 and flag in session.notes[0]


def test_cleared_environment(python: str, both: Both) -> None:
    path = both.write(MARKED + "print('ran')\n")
    session = both.same(["env", "-i", python, str(path)], plan_of(path, WANTED))
    assert not session.processes
    assert len(session.notes) == 1 and "nothing was profiled" in session.notes[0]


def test_no_python_at_all(both: Both) -> None:
    session = both.same(["sh", "-c", "echo hello; exit 6"], Plan())
    assert session.exit_code == 6 and not session.processes and session.notes


@pytest.mark.parametrize("command", [["no-such-command-here"], ["/etc/hostname"], ["/"]])
def test_cannot_start(command: list[str], tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=f"cannot start {command[0]}: .+") as caught:
        run_profiled(command, Plan(), RunOptions(directory=str(tmp_path)))
    assert "\n" not in str(caught.value)


def test_changed_file_is_not_marked(python: str, both: Both) -> None:
    path = both.write(MARKED)
    plan = plan_of(path, WANTED)
    path.write_text("# one line more\n" + MARKED + "print('ran')\n")
    both.ours([python, str(path)], plan)
    assert both.session is not None
    (process,) = both.session.processes
    assert not process.reached and not process.armed
    assert any("not the text that was scanned" in error for error in process.errors)


def test_other_copy(python: str, both: Both) -> None:
    path = both.write(MARKED, "src/pack/prog.py")
    plan = plan_of(path, WANTED, module="pack.prog")
    same = both.write(MARKED, "lib/pack/prog.py")
    env = {**os.environ, "PYTHONPATH": str(same.parent.parent)}
    command = [python, "-c", "import pack.prog"]
    assert counts_reached(both.same(command, plan, env=env)) == {"str(x)", "for _ in range(30)"}
    same.write_text(MARKED + "\nprint('another')\n")
    session = both.same(command, plan, env=env)
    last = session.processes[-1]
    assert not last.reached and set(last.other_copies.values()) == {str(same)}


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors")
def test_descriptors_and_streams_pass_through(python: str, both: Both, tmp_path: Path) -> None:
    path = both.write(MARKED + "import os, sys\nprint(os.read(0, 100), os.read(9, 100))\nos.write(2, b'\\xff\\n')\n")
    both.write("in", "input")
    both.write("extra", "extra")
    script = f"exec 9<extra; exec {python} {path} <input"
    plan = plan_of(path, WANTED)
    plain = subprocess.run(["bash", "-c", script], capture_output=True, cwd=tmp_path, check=False)
    code = (
        "import pickle, sys\nfrom awp_lint.detector.profiling.launch import *\n"
        "plan, command = pickle.load(open('plan', 'rb'))\n"
        "sys.exit(run_profiled(command, plan, RunOptions(directory='session')).exit_code)\n"
    )
    import pickle

    (tmp_path / "plan").write_bytes(pickle.dumps((plan, [python, str(path)])))
    both.write(code, "launcher.py")
    ours = subprocess.run(
        ["bash", "-c", f"exec 9<extra; exec {sys.executable} launcher.py <input"],
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)
