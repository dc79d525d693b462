"""Which loops get the patch, what it does to their files, and why others do not."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Effect, Finding, Safety
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import scan
from awp_lint.patches.plan import plan_files, with_diff
from awp_lint.patches.steploop.build import with_step_patches
from awp_lint.patches.write import write_patch

CORPUS = Path(__file__).resolve().parents[3] / "corpus"
SETTINGS = Settings(cache=False)

MAIN = """
    import torch
    from parts import Model

    class Pipeline:
        def __init__(self, model: Model) -> None:
            self.model = model

        @torch.inference_mode()
        def generate(self, x: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
            for step in range(num_inference_steps):
                x = {call}
            return x

    def main() -> None:
        pipeline = Pipeline(Model().to("cuda").eval())
        for prompt in ["a", "b"]:
            print(pipeline.generate(torch.zeros(1, 8, device="cuda"), 20))

    if __name__ == "__main__":
        main()
"""
MODEL = """
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)
            self.calls = 0
            self.history = []

        def forward(self, x: torch.Tensor{parameter}) -> torch.Tensor:
            {body}
"""


def project(tmp_path: Path, body: str, call: str = "self.model(x)", parameter: str = "") -> None:
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN).format(call=call))
    model = textwrap.dedent(MODEL).format(parameter=parameter, body="{body}")
    (tmp_path / "parts.py").write_text(
        model.replace("{body}", textwrap.dedent(body).strip().replace("\n", "\n" + " " * 8))
    )


def patched(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[Finding]:
    """The findings on step loops below a folder, with their patches."""
    monkeypatch.chdir(folder)
    findings = [f for f in scan(["."], SETTINGS).findings if f.rule == "AWP401"]
    problems: list[object] = []
    done = with_step_patches(findings, ["."], SETTINGS, problems)  # type: ignore[arg-type]
    assert problems == []
    return done


def only(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Finding:
    (finding,) = patched(monkeypatch, folder)
    return finding


def read(path: str) -> Source:
    return Source.decode(path, Path(path).read_bytes())


def test_a_step_of_fixed_shape_is_wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, "return self.layer(x).relu()")
    fix = only(monkeypatch, tmp_path).fix
    assert fix is not None and fix.safety is Safety.UNSAFE
    assert fix.effects == (Effect.MEMORY, Effect.TIMING)
    assert [edit.replacement for edit in fix.edits] == ["run_step(self.model, "]
    assert [(str(i.module), i.name) for i in fix.imports] == [("step_graph", "run_step")]
    (helper,) = fix.others
    assert helper.path == "step_graph.py" and "awp_lint" not in helper.created


def test_a_changing_number_becomes_a_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        if step > 100:
            raise ValueError("too many")
        positions = torch.arange(step, step + x.shape[1]).to(x.device)
        return self.layer(x) + positions
    """
    project(tmp_path, body, "self.model(x, step)", ", step: int")
    fix = only(monkeypatch, tmp_path).fix
    assert fix is not None and fix.safety is Safety.UNSAFE
    assert [edit.replacement for edit in fix.edits] == ["run_step(self.model, ", "at(", ")"]
    parts = next(change for change in fix.others if change.path == "parts.py")
    assert [edit.replacement for edit in parts.edits] == [
        "not in_step() and step > 100",
        "step + torch.arange(x.shape[1], device=x.device)",
    ]


REFUSED = {
    "reads": ("scale = x.abs().max().item()\nreturn self.layer(x) * scale", "reads a device value"),
    "branches": ("if x.sum() > 0:\n    x = -x\nreturn self.layer(x)", "asks for the truth"),
    "counts": ("self.calls += 1\nreturn self.layer(x)", "`self.calls` is written"),
    "keeps": ("self.history.append(x)\nreturn self.layer(x)", "changes an object"),
    "uploads": ("return self.layer(x) + torch.tensor([1.0, 2.0], device=x.device)[0]", "copies from the host"),
    "prints": ("print(x.shape)\nreturn self.layer(x)", "prints"),
    "writes into its input": ("x += self.layer(x)\nx[:, 0] = 0.0\nreturn x", "is a copy in the graph"),
    "unknown": ("import helpers\nreturn helpers.fast(self.layer(x))", "whose code is not seen"),
    "sizes": ("rows = torch.nonzero(x)\nreturn self.layer(x) + rows.shape[0]", "depends on the data"),
    "draws": ("return self.layer(x) * torch.multinomial(x.softmax(-1), 1)", "on the host"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_replay_would_not_do_is_refused_with_a_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, reason = REFUSED[name]
    project(tmp_path, body)
    finding = only(monkeypatch, tmp_path)
    assert finding.fix is not None and finding.fix.safety is Safety.MANUAL and finding.fix.edits == ()
    assert reason in finding.fix.title and any(reason in why for why in finding.why)


def test_a_changing_number_that_python_needs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, "return self.layer(x)[:, : x.shape[1] - step % 2]", "self.model(x, step)", ", step: int")
    finding = only(monkeypatch, tmp_path)
    assert finding.fix is not None and "is needed on the host" in finding.fix.title


def test_a_buffer_read_to_its_end_needs_a_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
        end = int((step + torch.arange(1, device=x.device))[-1]) + 1
        return self.layer(x) + self.layer.weight[:end].sum()
    """
    project(tmp_path, body, "self.model(x, step)", ", step: int")
    finding = only(monkeypatch, tmp_path)
    assert finding.fix is not None and "no mask hides the rest" in finding.fix.title


def test_a_dynamic_cache_becomes_a_static_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CORPUS / "steploops" / "speech", tmp_path / "speech")
    found = {Path(f.path).name: f for f in patched(monkeypatch, tmp_path / "speech")}
    outer, inner = found["main.py"].fix, found["model.py"].fix
    assert outer is not None and outer.effects == (Effect.MEMORY, Effect.TIMING, Effect.NUMERICS)
    assert [edit.replacement for edit in outer.edits] == [
        "run_step(self.model.depth_decoder, ",
        "run_step(self.model.decoder, ",
    ]
    parts = next(change for change in outer.others if change.path == "model.py")
    assert sorted(edit.replacement for edit in parts.edits) == [
        "attend",
        "grow(self.keys, keys, dim=2)",
        "grow(self.values, values, dim=2)",
        "length_of(self.keys, 2)",
        "start + torch.arange(x.shape[1], device=x.device)",
    ]
    created = {change.path: change.created for change in outer.others if change.created}
    assert set(created) == {"step_graph.py", "step_cache.py"}
    assert "from step_graph import" in created["step_cache.py"] and "awp_lint" not in created["step_cache.py"]
    assert inner is not None and inner.safety is Safety.MANUAL and "main.py:33 captures" in inner.title


CACHE_USES = {
    "a mask of its own": ("is_causal=length > 1)", "attn_mask=None if length > 1 else keys[:, :1, :, 0] > -9.0)"),
    "repeated heads": ("context = F", "keys = keys.repeat_interleave(1, dim=1)\n        context = F"),
    "a length elsewhere": ("return self.keys, self.values\n", "return self.keys, self.values + self.keys.mean()\n"),
}


@pytest.mark.parametrize("name", CACHE_USES)
def test_a_cache_that_is_not_understood_stays_and_the_fixed_part_is_captured(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CORPUS / "steploops" / "speech", tmp_path / "speech")
    model = tmp_path / "speech" / "model.py"
    old, new = CACHE_USES[name]
    assert old in model.read_text()
    model.write_text(model.read_text().replace(old, new))
    found = {Path(f.path).name: f for f in patched(monkeypatch, tmp_path / "speech")}
    fix = found["main.py"].fix
    assert fix is not None and fix.title == "run `self.model.depth_decoder` as a CUDA graph, captured once a shape"
    assert any("left as it is: `self.model.decoder`" in why and "grows" in why for why in found["main.py"].why)


def test_a_cache_that_other_code_reads_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CORPUS / "steploops" / "speech", tmp_path / "speech")
    main = tmp_path / "speech" / "main.py"
    main.write_text(
        main.read_text().replace(
            "return torch.cat(frames)", "print(caches[0].keys.shape)\n        return torch.cat(frames)"
        )
    )
    found = {Path(f.path).name: f for f in patched(monkeypatch, tmp_path / "speech")}
    assert any("is read outside of the step" in why for why in found["main.py"].why)


def test_models_of_libraries_are_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(CORPUS / "rules" / "AWP401" / "bad_denoise_server.py", tmp_path / "server.py")
    fix = only(monkeypatch, tmp_path).fix
    assert fix is not None and fix.title.endswith("the code below the step is not seen in this project")


def test_the_chat_patch_in_three_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CORPUS / "apps" / "chat", tmp_path / "chat")
    finding = only(monkeypatch, tmp_path / "chat")
    assert finding.fix is not None and Effect.NUMERICS in finding.fix.effects
    diff = with_diff(finding, read(finding.path)).fix
    assert diff is not None
    added = [line[1:].strip() for line in diff.diff.split("\n") if line.startswith("+") and not line.startswith("+++")]
    assert {
        "logits = run_step(self.model, tokens[:, None], at(width + step), padding, self.cache)",
        "end = None if in_step() else int(positions[-1]) + 1",
        "if not in_step() and start + length > self.config.max_length:",
        "positions = start + torch.arange(length, device=tokens.device)",
        "from chatserve.step_graph import at, run_step",
        "from chatserve.step_graph import in_step",
    } <= set(added)


def test_the_diff_applies_and_reverts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CORPUS / "apps" / "chat", tmp_path / "chat", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "chat"
    before = {p: p.read_bytes() for p in folder.rglob("*.py")}
    finding = only(monkeypatch, folder)
    patches = plan_files([finding], read, unsafe=True)
    (tmp_path / "step.diff").write_text("".join(patch.diff for patch in patches))
    subprocess.run(["git", "apply", str(tmp_path / "step.diff")], cwd=folder, check=True)
    by_git = {p: p.read_bytes() for p in folder.rglob("*.py")}
    assert len(by_git) == len(before) + 1
    subprocess.run(["git", "apply", "-R", str(tmp_path / "step.diff")], cwd=folder, check=True)
    assert {p: p.read_bytes() for p in folder.rglob("*.py")} == before
    for patch in patches:
        write_patch(patch)
    assert {p: p.read_bytes() for p in folder.rglob("*.py")} == by_git
    assert patched(monkeypatch, folder) == []  # nothing left to do


def test_a_helper_of_another_kind_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, "return self.layer(x)")
    (tmp_path / "step_graph.py").write_text("GRAPH = None\n")
    fix = only(monkeypatch, tmp_path).fix
    assert fix is not None
    assert [change.path for change in fix.others] == ["step_graphs.py"]
    assert [i.module for i in fix.imports] == ["step_graphs"]
