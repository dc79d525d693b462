"""The snippets that the injection writes into real code, and how it places them."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from awp_lint.rules.registry import all_rules


def _load() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "precision" / "inject.py"
    spec = importlib.util.spec_from_file_location("precision_inject", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


inject = _load()
FAULTS = inject.ALL


@pytest.mark.parametrize("faults", FAULTS, ids=lambda one: one.rule)
def test_snippets_are_python(faults: Any) -> None:
    assert faults.rule in {rule.id for rule in all_rules()}
    assert faults.kind in inject._SNIPPETS_A_FILE
    for snippet in (*faults.bad, *faults.good):
        ast.parse(snippet.format(x="hidden_states", u="u1"))


def test_each_rule_once_a_kind_of_place_with_faults_and_look_alikes() -> None:
    kinds = [(one.rule, one.kind) for one in FAULTS]
    assert len(kinds) == len(set(kinds))
    rules = {one.rule for one in FAULTS}
    assert {one.rule for one in FAULTS if one.bad} == rules == {one.rule for one in FAULTS if one.good}


def test_a_layer_that_is_handed_the_cache_is_no_place_of_an_encoder(tmp_path: Path) -> None:
    for name, given in (("a", "past_key_values=None"), ("b", "scale: float = 1.0")):
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / f"modeling_{name}.py").write_text(
            "class Layer:\n"
            f"    def forward(self, hidden_states: torch.Tensor, {given}):\n"
            "        return hidden_states\n"
        )
    found = inject.sites(tmp_path)
    assert {site.file for site in found["layer"]} == {"models/a/modeling_a.py", "models/b/modeling_b.py"}
    assert {site.file for site in found["decoder"]} == {"models/a/modeling_a.py"}
    assert {site.file for site in found["encoder"]} == {"models/b/modeling_b.py"}


def test_kinds_of_places_share_what_a_rule_plants(tmp_path: Path) -> None:
    (tmp_path / "models" / "a").mkdir(parents=True)
    text = "".join(
        f"class L{n}Layer:\n"
        "    def forward(self, hidden_states: torch.Tensor, past_key_values=None):\n"
        "        pass\n\n\n"
        for n in range(4)
    )
    (tmp_path / "models" / "a" / "modeling_a.py").write_text(text)
    faults = [
        inject.Faults("AWP101", "layer", ("{x}.item()",), ("{x}.sum()",)),
        inject.Faults("AWP101", "decoder", ("{x}.tolist()",), ()),
    ]
    planted = inject.plant(faults, inject.sites(tmp_path), 4, 0)
    assert [(one.site.kind, one.fault) for one in planted] == [
        *[("layer", True)] * 2, *[("layer", False)] * 2, *[("decoder", True)] * 2,
    ]  # fmt: skip


def test_lines_of_what_is_written(tmp_path: Path) -> None:
    root = tmp_path / "transformers"
    (root / "models" / "m").mkdir(parents=True)
    for name in inject._SHARED:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
    text = """
        import torch
        from torch import nn


        class MBlock(nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                \"\"\"A layer.\"\"\"
                return hidden_states
        """
    (root / "models" / "m" / "modeling_m.py").write_text(dedent(text).lstrip())
    faults = [one for one in inject.ALL if one.rule == "AWP105"]
    planted = inject.plant(faults, inject.sites(root), 1, 0)
    assert [(one.fault, one.site.line, one.site.tensor) for one in planted] == [(True, 8, "hidden_states")]
    [placed] = inject.write(root, tmp_path / "out", planted)
    lines = (tmp_path / "out" / "models" / "m" / "modeling_m.py").read_text().split("\n")
    written = "\n".join(lines[placed.first - 1 : placed.last])
    assert dedent(written) == placed.text and lines[placed.last].strip() == "return hidden_states"
