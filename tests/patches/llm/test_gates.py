"""Plausible but wrong replacements, each refused with its reason; right ones that pass."""
# ruff: noqa: E501  (a case a line)

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from awp_lint.detector.finding import Span
from awp_lint.patches.llm.gates import faults
from awp_lint.patches.llm.rows import Function
from awp_lint.rules.registry import rule

FUNCTION = """\
@torch.inference_mode()
def denoise(self, latents, timesteps, scale, noise=None):
    timesteps = timesteps.to("cuda")
    for t in timesteps:
        weight = 0.0 if t.item() > 900 else 1.0
        noise = self.model(latents, t)
        latents = latents - scale * weight * noise
        self.seen += 1
        latents = latents.clamp(-1.0, 1.0)
    try:
        out = latents.softmax(dim=-1)
    except RuntimeError as error:
        raise ValueError("it failed") from error
    with torch.autocast("cuda"):
        out = self.head(out)
    if out.shape[0] > 4:
        return out[:4]
    return out
"""

RIGHT = (
    ("    timesteps = timesteps.to", "    steps = timesteps.tolist()\n    timesteps = timesteps.to"),
    ("for t in timesteps:", "for t, step in zip(timesteps, steps):"),
    ("t.item() > 900", "step > 900"),
)


def function(text: str) -> Function:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def changed(*pairs: tuple[str, str], text: str = FUNCTION) -> str:
    for old, new in pairs:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    return text


def span_of(piece: str, text: str = FUNCTION) -> Span:
    at = text.index(piece)
    line = text.count("\n", 0, at) + 1
    column = at - text.rindex("\n", 0, at)
    return Span(line, column, line, column + len(piece))


def refused(text: str) -> list[str]:
    return faults(function(FUNCTION), function(text), span_of("t.item()"), rule("AWP101"))


def test_the_remedy_of_the_rules_page_passes() -> None:
    assert refused(changed(*RIGHT)) == []


def test_a_read_that_moves_out_of_the_loop_passes() -> None:
    text = """\
def attend(x, lengths, layers):
    for layer in layers:
        longest = lengths.max().item()
        x = layer(x[:, :longest])
    return x
"""
    moved = """\
def attend(x, lengths, layers):
    longest = lengths.max().item()
    for layer in layers:
        x = layer(x[:, :longest])
    return x
"""
    assert faults(function(text), function(moved), span_of("lengths.max().item()", text), rule("AWP101")) == []
    for wrong in (
        moved.replace("max", "min"),
        moved.replace("[:, :longest]", "[:, longest:]"),
        moved.replace("[:, :longest]", "[:longest, :]"),
        moved.replace("layer(x[:, :longest])", "x[:, :longest]"),
    ):
        assert faults(function(text), function(wrong), span_of("lengths.max().item()", text), rule("AWP101"))


WRONG: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "changes a threshold": (((*RIGHT[:2], ("t.item() > 900", "step > 90"))), "new there"),
    "changes the comparison": ((*RIGHT[:2], ("t.item() > 900", "step >= 900")), "GtE"),
    "turns the comparison round": ((*RIGHT[:2], ("t.item() > 900", "900 > step")), "another way"),
    "swaps the branches of an expression": ((*RIGHT, ("0.0 if step > 900 else 1.0", "1.0 if step > 900 else 0.0")), "another way"),
    "drops the condition": ((("weight = 0.0 if t.item() > 900 else 1.0", "weight = 1.0"),), "dropped"),
    "drops a factor": ((*RIGHT, ("scale * weight * noise", "weight * noise")), "dropped"),
    "swaps operands": ((*RIGHT, ("latents - scale * weight * noise", "scale * weight * noise - latents")), "another way"),
    "changes an operator": ((*RIGHT, ("latents - scale", "latents + scale")), "Add"),
    "uses another variable": ((*RIGHT, ("scale * weight * noise", "scale * weight * latents")), "another way"),
    "uses another variable by a new name": ((*RIGHT, ("        latents = latents - scale * weight * noise", "        other = latents\n        latents = latents - scale * weight * other")), "another way"),
    "mixes up new names": ((*RIGHT, ("        weight = 0.0 if step > 900", "        weight = 0.0 if scale > 900")), "another way|nothing"),
    "lowers the precision": ((*RIGHT, ("weight * noise", "weight * noise.half()")), "half"),
    "changes a dtype by to": ((*RIGHT, ("timesteps.to(\"cuda\")", "timesteps.to(\"cuda\", torch.float16)")), "float16"),
    "moves to the host": ((*RIGHT, ("timesteps.to(\"cuda\")", "timesteps.to(\"cpu\")")), "cpu"),
    "drops a branch": ((*RIGHT, ("    if out.shape[0] > 4:\n        return out[:4]\n", "")), "nothing to do with|fewer"),
    "widens an exception": ((*RIGHT, ("except RuntimeError", "except Exception")), "nothing to do with"),
    "drops an exception's cause": ((*RIGHT, (" from error\n", "\n")), "nothing to do with"),
    "swallows an exception": ((*RIGHT, ('raise ValueError("it failed") from error', "out = latents")), "fewer `raise`"),
    "removes the try": (
        (*RIGHT, ('    try:\n        out = latents.softmax(dim=-1)\n    except RuntimeError as error:\n        raise ValueError("it failed") from error\n', "    out = latents.softmax(dim=-1)\n")),
        "fewer `try`",
    ),
    "returns early": ((*RIGHT, ("    try:", "    return latents\n    try:")), "more `return`"),
    "leaves the loop early": ((*RIGHT, ("        self.seen += 1", "        self.seen += 1\n        break")), "more `break`"),
    "skips work": ((*RIGHT, ("        noise = self.model", "        if step > 900:\n            continue\n        noise = self.model")), "added"),
    "drops a clamp": ((*RIGHT, ("        latents = latents.clamp(-1.0, 1.0)\n", "")), "nothing to do with|dropped"),
    "drops a side effect": ((*RIGHT, ("        self.seen += 1\n", "")), "nothing to do with"),
    "reorders statements": (
        (*RIGHT, ("        self.seen += 1\n        latents = latents.clamp(-1.0, 1.0)\n", "        latents = latents.clamp(-1.0, 1.0)\n        self.seen += 1\n")),
        "nothing to do with",
    ),
    "moves the model out of the loop": (
        (("        noise = self.model(latents, t)\n", ""), ("    for t in", "    noise = self.model(latents, timesteps)\n    for t in")),
        "nothing to do with|another way",
    ),
    "renames an argument": ((*RIGHT, ("latents, timesteps, scale, noise=None", "latents, timesteps, factor, noise=None")), "signature"),
    "changes a default": ((*RIGHT, ("noise=None", "noise=0")), "signature"),
    "drops a decorator": ((*RIGHT, ("@torch.inference_mode()\n", "")), "decorators"),
    "becomes another function": ((*RIGHT, ("def denoise", "def denoise_fast")), "name is changed"),
    "becomes async": ((*RIGHT, ("def denoise", "async def denoise")), "async"),
    "drops a context": ((*RIGHT, ('    with torch.autocast("cuda"):\n        out = self.head(out)', "    out = self.head(out)")), "fewer `with`"),
    "adds a context": ((*RIGHT, ("        out = latents", '        with torch.autocast("cuda"):\n            out = latents')), "more `with`"),
    "hides the read in a lambda": ((("t.item() > 900", "(lambda: t.item())() > 900"),), "Lambda"),
    "hides the read in a function": (
        (("    for t in", "    def read(x):\n        return x.item()\n    for t in"), ("t.item() > 900", "read(t) > 900")),
        "more `functiondef`",
    ),
    "hides the read in getattr": ((("t.item() > 900", 'getattr(t, "item")() > 900'),), "getattr"),
    "hides the read in a bound method": ((("        weight = 0.0 if t.item()", "        read = t.item\n        weight = 0.0 if read()"),), "new there"),
    "reads in another way": ((("t.item() > 900", "t.cpu().numpy() > 900"),), "new there"),
    "caches on the object": (
        ((("    for t in timesteps:", "    self.steps = timesteps.tolist()\n    for t, step in zip(timesteps, self.steps):"), RIGHT[2])),
        "written to",
    ),
    "adds a sync": ((*RIGHT, ("        noise = self.model", "        torch.cuda.synchronize()\n        noise = self.model")), "new there"),
    "works in place": ((*RIGHT, ("latents = latents - scale * weight * noise", "latents -= scale * weight * noise")), "AugAssign|new there|another way"),
    "draws random numbers": ((*RIGHT, ("weight * noise", "weight * torch.randn_like(noise)")), "randn_like"),
    "imports": ((*RIGHT, ("    timesteps = timesteps.to", "    import os\n    timesteps = timesteps.to")), "more `import`"),
    "runs a command": ((*RIGHT, ("        noise = self.model", '        __import__("os").system("id")\n        noise = self.model')), "__import__"),
    "rebinds a variable": ((*RIGHT, ("    steps = timesteps.tolist()", "    steps = scale = timesteps.tolist()")), "bound anew"),
    "calls the model twice": ((*RIGHT, ("scale * weight * noise", "scale * weight * self.model(latents, t)")), "new there"),
    "reads fewer steps": ((*RIGHT, ("timesteps.tolist()", "timesteps[:4].tolist()")), "new there"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_replacements_are_refused_with_a_reason(kind: str) -> None:
    pairs, reason = WRONG[kind]
    found = refused(changed(*pairs))
    assert found, "it passes"
    assert any(re.search(reason, one) for one in found), found
    assert all("\n" not in one for one in found)


def test_statements_do_not_pass_those_that_they_depend_on() -> None:
    text = """\
def f(self, x, work, scale):
    peak = x.max().item()
    y = x / peak
    y[0] = 1.0
    work.wait()
    return y
"""
    span = span_of("x.max().item()", text)
    right = text.replace(".item()", "")
    assert faults(function(text), function(right), span, rule("AWP101")) == []
    lines = right.splitlines(keepends=True)
    for swap in range(1, 5):
        wrong = "".join([*lines[:swap], lines[swap + 1], lines[swap], *lines[swap + 2 :]])
        if swap != 3:  # the wait and the write have nothing in common
            assert faults(function(text), function(wrong), span, rule("AWP101")), wrong


def test_variables_of_one_loop_are_told_apart() -> None:
    text = """\
def grid(sizes, ids):
    for t, h, w in sizes:
        ids.append(rows(h.item(), w))
    return ids
"""
    right = text.replace("in sizes:", "in sizes.tolist():").replace("h.item()", "h")
    found = [
        faults(function(text), function(right.replace("rows(h, w)", call)), span_of("h.item()", text), rule("AWP101"))
        for call in ("rows(h, w)", "rows(t, w)", "rows(w, h)", "rows(h, t)")
    ]
    assert [bool(one) for one in found] == [False, True, True, True]


def test_there_are_thirty_kinds_at_least() -> None:
    assert len(WRONG) >= 30


def test_nothing_changed_is_no_fault_of_form() -> None:
    assert refused(textwrap.dedent(FUNCTION)) == []


GUARDED = """\
@torch.inference_mode()
def restore(self, latents, steps, limit):
    for _ in range(steps):
        latents = self.model(latents)
        if (latents.abs() > limit).any():
            latents = latents.clamp(-limit, limit)
    return latents
"""
SELECTED = """\
@torch.inference_mode()
def restore(self, latents, steps, limit):
    for _ in range(steps):
        latents = self.model(latents)
        outside = (latents.abs() > limit).any()
        latents = torch.where(outside, latents.clamp(-limit, limit), latents)
    return latents
"""
ADVICE = "select with `torch.where`, or decide it once outside the hot path"


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        ("", "", True),
        ("latents.clamp(-limit, limit), latents)", "latents.clamp(-limit, -limit), latents)", False),
        ("latents.clamp(-limit, limit), latents)", "latents.clamp(limit), latents)", False),
        ("latents.clamp(-limit, limit), latents)", "self.model(latents), latents)", False),
        ("(latents.abs() > limit)", "(latents > limit)", False),
        ("(latents.abs() > limit)", "(latents.abs() < limit)", False),
        ("latents = torch.where(outside", "limit = torch.where(outside", False),
        ("        latents = self.model(latents)\n", "", False),
        ("(outside, latents.clamp(-limit, limit), latents)", "(outside, latents, latents)", False),
    ],
)
def test_a_branch_that_becomes_a_choice_on_the_device(old: str, new: str, passes: bool) -> None:
    span = span_of("(latents.abs() > limit).any()", GUARDED)
    changed_ = SELECTED.replace(old, new, 1) if old else SELECTED
    assert old in SELECTED
    found = faults(function(GUARDED), function(changed_), span, rule("AWP102"), ADVICE)
    assert (found == []) is passes, found
