"""What a file is, told from its name: Python, or a file that configures or starts a server.

Files of the second kind are many (a tree full of YAML and JSON) and few of them matter: they are read up to a size and
kept only where their bytes hold a word that the rules on them know.
"""

from __future__ import annotations

import enum
import re


class Kind(enum.Enum):
    """How a file is read."""

    PYTHON = "python"  # notebooks too
    SHELL = "shell"
    DOCKER = "docker"
    YAML = "yaml"
    JSON = "json"


#: Larger files of these kinds are data.
MAX_CONFIG_BYTES = 300_000

#: Name patterns of the files that configure or start servers, as ``include`` takes them.
CONFIG_PATTERNS = (
    "*.sh", "*.bash", "*.zsh", "*.ksh", "entrypoint", "start", "serve", "Dockerfile", "Dockerfile.*", "Dockerfile-*",
    "Dockerfile_*", "Containerfile", "Containerfile.*", "*.dockerfile", "*.Dockerfile", "*.yaml", "*.yml", "*.json",
)  # fmt: skip

_NAMES = (
    (Kind.SHELL, re.compile(r"\.(sh|bash|zsh|ksh)$|^(entrypoint|start|serve)$")),
    (Kind.DOCKER, re.compile(r"^(dockerfile|containerfile)([._-][\w.-]+)?$|\.dockerfile$", re.IGNORECASE)),
    (Kind.YAML, re.compile(r"\.ya?ml$")),
    (Kind.JSON, re.compile(r"\.json$")),
)
_PYTHON = (".py", ".pyi", ".pyw", ".ipynb")
_SHELLS = re.compile(rb"#![^\n]*\b(ba|da|z|k)?sh\b")


def kind_of(path: str) -> Kind:
    """The kind of a file, by its name; Python where the name says nothing."""
    name = path.rpartition("/")[2]
    if name.endswith(_PYTHON):
        return Kind.PYTHON
    return next((kind for kind, pattern in _NAMES if pattern.search(name)), Kind.PYTHON)


def is_shell(raw: bytes) -> bool:
    """Whether the first line asks for a shell."""
    return _SHELLS.match(raw) is not None
