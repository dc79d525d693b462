"""Reading the files of a scan: bytes, content hash, and what the bytes alone tell."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from awp_lint.detector.finding import Problem
from awp_lint.detector.project.files import FoundFile, module_name
from awp_lint.detector.project.kinds import MAX_CONFIG_BYTES, Kind, is_shell
from awp_lint.detector.project.screening import Screened, imported_names, is_model_code

#: Larger files are data or generated code. Parsing takes some 150 bytes of memory a byte of source.
MAX_BYTES = 3_000_000


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file whose bytes have been read once. ``digest`` is of its content."""

    found: FoundFile
    module: str
    is_package: bool
    digest: bytes
    size: int
    lines: int

    @property
    def identity(self) -> str:
        """All that the results of a file depend on besides its content."""
        return f"{self.found.path}\0{self.found.real}\0{self.module}\0{self.is_package}\0{self.found.named}"


#: Contents that an editor holds and the disk does not, by real path; for scans in this process only.
held: dict[str, bytes] = {}


def read_bytes(real: str) -> bytes:
    """The content of a file, as an editor holds it where one does. Raises :class:`OSError`."""
    if real in held:
        return held[real]
    with open(real, "rb") as file:
        return file.read()


def content_digest(raw: bytes) -> bytes:
    """What tells one content of a file from another."""
    return hashlib.blake2b(raw, digest_size=20).digest()


def read_all(
    found: Sequence[FoundFile], wanted: Callable[[bytes], bool] = lambda raw: True
) -> tuple[list[ReadFile], list[Problem]]:
    """Read every file once. What cannot be read becomes a problem, fatal where the user named the file.

    Of files that are no Python only those are kept that the user named or whose content is ``wanted``.
    """
    files: list[ReadFile] = []
    problems: list[Problem] = []
    roots: dict[str, str] = {}
    for file in found:
        try:
            status = os.stat(file.real)
            if not stat.S_ISREG(status.st_mode):
                if file.named:
                    problems.append(Problem(file.path, "not a regular file", fatal=True))
                continue
            config = file.kind is not Kind.PYTHON
            if config and not file.named and status.st_size > MAX_CONFIG_BYTES:
                continue
            if status.st_size > MAX_BYTES:
                message = f"larger than {MAX_BYTES // 1_000_000} MB, as data and generated code are: skipped"
                problems.append(Problem(file.path, message, fatal=file.named))
                continue
            raw = read_bytes(file.real)
        except OSError as error:
            if file.named or not os.path.islink(file.real):
                problems.append(Problem(file.path, f"cannot read: {error.strerror or error}", fatal=file.named))
            continue
        if config and not file.named and not wanted(raw):
            continue
        if file.named and not config and not file.real.endswith((".py", ".pyi", ".ipynb")) and is_shell(raw):
            file, config = replace(file, kind=Kind.SHELL), True
        module, is_package = ("", False) if config else module_name(file.real, roots)
        files.append(ReadFile(file, module, is_package, content_digest(raw), len(raw), raw.count(b"\n")))
    return files, problems


def screen(files: Sequence[ReadFile]) -> list[Screened]:
    """What the bytes of each file tell; a file that has gone meanwhile tells nothing."""
    found = []
    for file in files:
        try:
            raw = read_bytes(file.found.real)
        except OSError:
            raw = b""
        model_code = is_model_code(raw)
        found.append(Screened(file.module.rpartition(".")[2], model_code, imported_names(raw)))
    return found
