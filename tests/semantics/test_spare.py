"""Classes that nobody names in a whole package are not worth a finding; where somebody may name them, they are."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.scan import scan

LAYERS = """
    import torch

    __all__ = ["Other"]

    class Attention(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            print(hidden_states.max().item())
            return hidden_states

    class Other(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            return hidden_states
"""
MODEL = """
    import torch
    from .layers import Other

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Other() for _ in range(8)])

        def forward(self, hidden_states):
            for layer in self.layers:
                hidden_states = layer(hidden_states)
            return hidden_states
"""


def written(folder: Path, **others: str) -> Path:
    """A package of some layers and a model, with more files or other texts of these."""
    files = {"lib/__init__": "", "lib/nn/__init__": "", "lib/nn/layers": LAYERS, "lib/nn/model": MODEL, **others}
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def told(folder: Path, *paths: str, settings: Settings | None = None) -> bool:
    """Whether the read in the layer is told of."""
    result = scan(paths or (".",), settings or Settings(cache=False, jobs=1), cwd=str(folder))
    return any(finding.rule == "AWP101" for finding in result.findings)


def test_nobody_names_it(tmp_path: Path) -> None:
    assert not told(written(tmp_path))


def test_others_take_what_stands_beside_it(tmp_path: Path) -> None:
    unsaid = LAYERS.replace('__all__ = ["Other"]', "")
    assert not told(written(tmp_path, **{"lib/nn/layers": unsaid}))
    alone = MODEL.replace("from .layers import Other", "from torch.nn import Identity as Other")
    assert told(written(tmp_path, **{"lib/nn/layers": unsaid, "lib/nn/model": alone}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lib/use", "from .nn.layers import Attention"),
        ("lib/use", "from .nn.layers import Attention as Mixer"),
        ("lib/use", "import torch\nfrom lib.nn import layers\nKINDS = {'a': layers.Attention}"),
        ("lib/use", "import torch\nimport lib.nn.layers\nmixer = lib.nn.layers.Attention()"),
        ("lib/use", "import torch\nimport lib\nmixer = lib.nn.layers.Attention()"),
        ("lib/use", "import torch\nKINDS = {'a': ('lib.nn.layers', 'Attention')}"),
        ("lib/use", "import torch\nKINDS = {'a': 'lib.nn.layers.Attention'}"),
        ("lib/use", "import torch\ndef made(config):\n    return instantiate_from_config(config.layer)"),
        ("app", "from lib.nn.layers import Attention"),
        ("lib/nn/layers", LAYERS.replace("class Attention", "@layers.register\n    class Attention")),
        ("lib/nn/layers", LAYERS.replace("(torch.nn.Module)", "(torch.nn.Module, name='attention')", 1)),
        ("lib/nn/layers", LAYERS + "\n    made = {'a': Attention}"),
        ("lib/nn/layers", LAYERS + "\n    def made(name):\n        return globals()[name]()"),
        ("lib/nn/layers", LAYERS + "\n    __all__ += more"),
        ("lib/nn/layers", LAYERS.replace('["Other"]', '["Other", *more]')),
    ],
)
def test_somebody_may_name_it(tmp_path: Path, name: str, text: str) -> None:
    assert told(written(tmp_path, **{name: text}))


@pytest.mark.parametrize(
    "text",
    [
        "from .nn.layers import *",
        "from .nn.layers import Other",
        "from .nn import model",
        "import torch\nATTENTION = 'attention'",
    ],
)
def test_others_name_something_else(tmp_path: Path, text: str) -> None:
    assert not told(written(tmp_path, **{"lib/use": text}))


def test_what_only_such_a_class_calls(tmp_path: Path) -> None:
    holder = """
    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Attention() for _ in range(8)])

        def forward(self, hidden_states):
            for layer in self.layers:
                hidden_states = layer(hidden_states)
            return hidden_states
    """
    assert not told(written(tmp_path, **{"lib/nn/layers": LAYERS + holder}))
    assert told(written(tmp_path, **{"lib/nn/layers": LAYERS + holder, "lib/use": "from .nn.layers import Decoder"}))


def test_classes_below_another(tmp_path: Path) -> None:
    below = LAYERS.replace("Attention(torch.nn.Module)", "Attention(Base)").replace(
        "__all__", "from .base import Base\n    __all__"
    )
    base = "import torch\nclass Base(torch.nn.Module):\n    {method}"
    asks = base.format(method="@classmethod\n    def kinds(cls): return [*cls.__subclasses__()]")
    keeps = base.format(method="def __init_subclass__(cls): ...")
    for number, (text, seen) in enumerate(((base.format(method="pass"), False), (asks, True), (keeps, True))):
        folder = written(tmp_path / str(number), **{"lib/nn/layers": below, "lib/nn/base": text})
        assert told(folder) is seen


def test_a_part_of_the_package_tells_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path)
    files = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.py"))]
    assert told(folder, "lib/nn/layers.py")
    assert told(folder, "lib/nn")
    assert told(folder, *files)
    assert not told(folder, "lib")
    excluding = Settings(cache=False, jobs=1, exclude=(*Settings().exclude, "tests"))
    assert told(folder, "lib", settings=excluding)


def test_what_was_remembered_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWP_LINT_CACHE_DIR", str(tmp_path / "cache"))
    folder = written(tmp_path / "code")
    settings = Settings(cache=True, jobs=1)
    for _ in range(2):
        assert not told(folder, settings=settings)
        assert told(folder, "lib/__init__.py", "lib", settings=settings)
    (folder / "lib/use.py").write_text("import torch\nKINDS = {'a': 'Attention'}\n")
    assert told(folder, settings=settings)
    (folder / "lib/use.py").write_text("import torch\nKINDS = {'a': 'attention'}\n")
    assert not told(folder, settings=settings)
