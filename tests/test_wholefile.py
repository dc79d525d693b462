from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from awp_lint.detector.wholefile import make_whole, write_whole


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_content_is_replaced_and_the_mode_stays(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    write_whole(target, b"one")
    target.chmod(0o640)
    write_whole(target, b"two")
    assert target.read_bytes() == b"two" and target.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["report.json"]


def test_a_new_file_is_as_open_as_the_person_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", b"")
        make_whole(tmp_path / "b", b"")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [0o640, 0o640]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "link"
    link.symlink_to("far/real")
    for content in (b"first", b"second"):
        write_whole(link, content)
        assert link.is_symlink() and (tmp_path / "far" / "real").read_bytes() == content


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"through")
    reader.join(10)
    assert seen == [b"through"] and pipe.is_fifo()
    write_whole("/dev/null", b"nothing")
    assert not Path("/dev/null").is_file()


def test_nothing_that_lies_ready_is_written_through(tmp_path: Path) -> None:
    """The old way wrote NAME.part: a link of that name would have led anywhere."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("out.part", ".out.part"):
        (tmp_path / name).symlink_to(victim)
    write_whole(tmp_path / "out", b"report")
    assert victim.read_text() == "mine" and (tmp_path / "out").read_bytes() == b"report"


def test_a_file_that_is_there_is_never_made_anew(tmp_path: Path) -> None:
    target = tmp_path / "step.py"
    make_whole(target, b"one")
    with pytest.raises(FileExistsError):
        make_whole(target, b"two")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        make_whole(tmp_path / "dangling", b"two")
    assert target.read_bytes() == b"one" and names(tmp_path) == ["dangling", "step.py"]


FULL = """
import resource, signal, sys
from awp_lint.detector.wholefile import make_whole, write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for write in (write_whole, make_whole):
    try:
        write(sys.argv[1] + write.__name__, b"x" * 5000)
    except OSError as error:
        print(error.errno)
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "f-write_whole").write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", FULL, f"{tmp_path}/f-"], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 2
    assert names(tmp_path) == ["f-write_whole"] and (tmp_path / "f-write_whole").read_bytes() == b"old"


KILLED = """
import sys, itertools
from awp_lint.detector.wholefile import write_whole
print("go", flush=True)
for number in itertools.count():
    write_whole(sys.argv[1], bytes([65 + number % 26]) * 300_000)
"""


def test_a_killed_write_leaves_one_of_the_versions(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"A" * 300_000)
    for pause in (0.0, 0.004, 0.011, 0.023):
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(pause)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        content = target.read_bytes()
        assert len(content) == 300_000 and len(set(content)) == 1
