"""What a rewrite computes is what the code computed before: both are run."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.splice import splice
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "rules"


def both(rule: str, name: str) -> tuple[ModuleType, ModuleType]:
    """The corpus file as it is and with its fixes, as modules."""
    text = (CORPUS / rule / name).read_text(encoding="utf-8")
    findings = run_rules(view_of_source(text, path=name), all_rules()).findings
    edits = [edit for f in findings if f.rule == rule and f.fix is not None for edit in f.fix.edits]
    assert edits
    modules = []
    for source in (text, splice(text, edits)):
        module = ModuleType(name.removesuffix(".py"))
        exec(compile(source, name, "exec"), module.__dict__)
        modules.append(module)
    return modules[0], modules[1]


def heads(*lengths: int, dim: int = 16) -> list[Any]:
    torch.manual_seed(1)
    return [torch.randn(2, 3, length, dim) for length in lengths]


def close(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_optional_mask_and_dropout(masked: bool) -> None:
    before, after = both("AWP501", "bad_matmul.py")
    torch.manual_seed(0)
    one = before.Attention(48, 3).eval()
    other = after.Attention(48, 3).eval()
    other.load_state_dict(one.state_dict())
    x = torch.randn(2, 7, 48)
    mask = torch.zeros(2, 1, 7, 7).masked_fill(torch.ones(7, 7).triu(1).bool(), float("-inf")) if masked else None
    close(one(x, mask), other(x, mask))


def test_attention_with_boolean_fill_and_without_scale() -> None:
    before, after = both("AWP501", "bad_operators.py")
    q, k, v = heads(6, 6, 6)
    close(before.Causal(16)(q, k, v), after.Causal(16)(q, k, v))
    close(before.Plain()(q, k, v), after.Plain()(q, k, v))


def test_attention_by_einsum_and_baddbmm() -> None:
    before, after = both("AWP501", "bad_einsum.py")
    q, k, v = heads(5, 7, 7)
    bias = torch.randn(5, 7)
    close(before.Einsum(16)(q, k, v, bias), after.Einsum(16)(q, k, v, bias))
    flat = [t.flatten(0, 1) for t in (q, k, v)]
    alibi = torch.randn(6, 5, 7)
    close(before.WithBias(0.3)(*flat, alibi), after.WithBias(0.3)(*flat, alibi))


def test_heads_left_as_they_are() -> None:
    before, after = both("AWP503", "bad_repeat.py")
    torch.manual_seed(4)
    q, k, v = torch.randn(2, 6, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    close(before.Attention(3)(q, k, v), after.Attention(3)(q, k, v))
    close(before.Interleaved()(q, k, v), after.Interleaved()(q, k, v))


@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_without_a_mask(length: int) -> None:
    before, after = both("AWP504", "bad_tril.py")
    q, k, v = heads(length, length, length)
    close(before.Attention()(q, k, v), after.Attention()(q, k, v))
    close(before.Upper()(q, k, v), after.Upper()(q, k, v))


def test_mask_assignment_stays_in_place() -> None:
    before, after = both("AWP105", "bad_mask_assign.py")
    torch.manual_seed(0)
    one, other = before.Padded(4, 2), after.Padded(4, 2)
    other.load_state_dict(one.state_dict())
    x, mask = torch.randn(2, 5, 4) * 5, torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    with torch.no_grad():
        assert torch.equal(one(x.clone(), mask), other(x.clone(), mask))


def test_weights_not_asked_for() -> None:
    before, after = both("AWP505", "bad_mha.py")
    torch.manual_seed(0)
    one = before.Block(16, 4).eval()
    other = after.Block(16, 4).eval()
    other.load_state_dict(one.state_dict())
    x, memory = torch.randn(5, 5, 16), torch.randn(5, 5, 16)
    mask = torch.zeros(5, 5)
    with torch.no_grad():
        close(one(x, memory, mask), other(x, memory, mask))


def test_factories_make_the_same_tensors() -> None:
    text = (CORPUS / "AWP602" / "bad_chained.py").read_text(encoding="utf-8").replace(".cuda()", '.to("meta")')
    findings = run_rules(view_of_source(text, path="bad_chained.py"), all_rules()).findings
    fixed = splice(text, [e for f in findings if f.rule == "AWP602" and f.fix is not None for e in f.fix.edits])
    seen: list[list[tuple[Any, ...]]] = []
    for source in (text, fixed):
        module = ModuleType("chained")
        exec(compile(source, "chained", "exec"), module.__dict__)
        made: list[tuple[Any, ...]] = []

        class Layer(torch.nn.Module):  # type: ignore[misc]
            def forward(self, hidden_states: Any, *rest: Any, made: list[tuple[Any, ...]] = made) -> Any:
                made.append(rest)
                return hidden_states

        module.Decoder(torch.nn.ModuleList([Layer()]))(torch.zeros(1, 6, 2, dtype=torch.float64))
        seen.append(made)
    for one, other in zip(seen[0][0], seen[1][0], strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and one.device == other.device
        if one.device.type != "meta":
            assert torch.equal(one, other)
