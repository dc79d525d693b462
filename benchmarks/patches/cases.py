"""What is run before and after its rewrite: snippets, and the corpus's own files with a few lines that use them.

A case's code defines ``run``; ``inputs`` gives the arguments of its calls. They are made for each type and kind of
tensor; where the code as it is raises on one, there is nothing to compare.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import snippets as s
import torch
from torch import nn

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "rules"
# The fused call gives nothing for an empty batch in half types on CUDA (torch 2.11).
FILLED = ("plain", "strided", "nan")
PLAIN, NUMBERS, SAFE = ("plain",), ("plain", "strided", "nan", "empty"), ("plain", "strided", "nan", "inf", "empty")


class Inputs:
    """Tensors of one type, kind and device, the same ones again for the same seed.

    ``strided``: every second column of a wider tensor; ``nan`` and ``inf``: with these and a negative zero among the
    values; ``empty``: nothing along the first axis. ``fixed`` tensors are plain whatever the kind.
    """

    def __init__(self, dtype: torch.dtype, kind: str, device: str) -> None:
        self.dtype, self.kind, self.device = dtype, kind, device
        self._random = torch.Generator().manual_seed(3)

    def __call__(self, *shape: int) -> torch.Tensor:
        """Normally distributed numbers."""
        shape = self._shape(shape)
        made = torch.randn(self._wide(shape), generator=self._random)
        for value, step in {"nan": ((float("nan"), 7), (-0.0, 5)), "inf": ((float("inf"), 7),)}.get(self.kind, ()):
            made.view(-1)[2::step] = value
        return self._placed(made.to(self.dtype))

    def fixed(self, *shape: int) -> torch.Tensor:
        """The same, plain whatever the kind."""
        return torch.randn(shape, generator=self._random).to(self.device, self.dtype)

    def mask(self, *shape: int, share: float = 0.6) -> torch.Tensor:
        """True at random places."""
        return self._placed(torch.rand(self._wide(self._shape(shape)), generator=self._random) < share)

    def ids(self, high: int, *shape: int) -> torch.Tensor:
        """Integers below ``high``."""
        return self._placed(torch.randint(high, self._wide(self._shape(shape)), generator=self._random))

    def model(self, vocabulary: int = 11) -> Callable[..., torch.Tensor]:
        """A stand-in for a language model: ids (rows, length) to logits (rows, length, vocabulary)."""
        weight = self.fixed(16, vocabulary)
        return lambda ids, *rest: torch.sin(weight[ids % 16].float().cumsum(1) * 3.1).to(self.dtype)

    def layers(self, count: int = 2, dim: int = 4) -> nn.ModuleList:
        """Linear layers that ignore further arguments."""
        return nn.ModuleList([Layer(dim) for _ in range(count)]).to(self.device, self.dtype)

    def place(self, *modules: nn.Module) -> Any:
        """Modules with the inputs' type and device, ready to infer."""
        placed = [module.to(self.device, self.dtype).eval() for module in modules]
        return placed[0] if len(placed) == 1 else placed

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (0, *shape[1:]) if self.kind == "empty" else shape

    def _wide(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-1], 2 * shape[-1]) if self.kind == "strided" and shape else shape

    def _placed(self, made: torch.Tensor) -> torch.Tensor:
        made = made.to(self.device)
        return made[..., ::2] if self.kind == "strided" and made.ndim else made


class Layer(nn.Linear):
    """Adds up whatever else it is given, so that none of it is lost."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim, dim)

    def forward(self, hidden_states: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        out = super().forward(hidden_states)
        for one in rest:
            out = out + one.to(out.dtype).mean()
        return out


@dataclass(frozen=True)
class Case:
    """``code`` or, with ``.py`` at its end, a corpus file, to which ``use`` is added; it then defines ``run``.

    ``kinds`` of tensors the code is for. ``has`` and ``lacks`` are texts of the rewritten code.
    """

    rule: str
    name: str
    code: str
    inputs: Callable[[Inputs], Iterable[tuple[Any, ...]]]
    use: str = ""
    kinds: tuple[str, ...] = NUMBERS
    has: str = ""
    lacks: str = "\0"
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16, torch.float16)

    @property
    def text(self) -> str:
        """The code as it is; a corpus file without its expectations."""
        if not self.code.endswith(".py"):
            return self.code
        return re.sub(r"[ \t]*# expect.*", "", (CORPUS / self.code).read_text(encoding="utf-8"))


def _loops(t: Inputs) -> Iterable[tuple[Any, ...]]:
    return [(t(3), t(9)), (t.fixed(3).abs(), t(9))]


def _masked(t: Inputs) -> Iterable[tuple[Any, ...]]:
    return [(t(9), t.mask(9, share=share).long()) for share in (0.0, 0.6, 1.1)]


def _qkv(t: Inputs, *lengths: int, dim: int = 16) -> tuple[torch.Tensor, ...]:
    return tuple(t(2, 3, length, dim) for length in lengths)


_STEPS = "\ndef run(unet, *rest):\n    return Pipeline(unet)(*rest)\n"
_NONE = lambda t: [()]  # noqa: E731
_ONE = (torch.float32,)

SYNC = (
    Case("AWP101", "loop", s.LOOP, _loops, kinds=SAFE, has="zip(timesteps, timesteps.tolist())", lacks=".item()"),
    Case("AWP101", "row", s.ROW, lambda t: [(t.ids(9, 3),)], kinds=("plain", "strided"), has="grid_thw.tolist()",
         lacks=".item()"),
    Case("AWP101", "totals", s.TOTALS, lambda t: [(v, torch.arange(4)) for v in (t(9), t(3, 5))], kinds=SAFE,
         has=".double()", lacks=".item()"),
    Case("AWP101", "rows of scores", "AWP101/bad_row_items.py", lambda t: [(t.model(), t.ids(9, 3, 4))],
         "\ndef run(model, ids):\n    return generate(model, ids, 3, 2)\n", ("plain", "strided", "empty")),
    Case("AWP101", "crops", s.CROPS,
         lambda t: [(t.fixed(2, 6, 6), torch.tensor([[16, 24], [32, 17]], device=t.device),
                     torch.tensor([[1, 2, 3], [1, 4, 2]], device=t.device))],
         kinds=PLAIN, has="zip(images, sizes.tolist())"),
    Case("AWP104", "times", s.CROPS,
         lambda t: [(t.fixed(2, 6, 6), torch.tensor([[16, 24], [32, 17]], device=t.device),
                     torch.tensor([[1, 2, 3], [1, 4, 2]], device=t.device))],
         kinds=PLAIN, has="times.tolist()"),
    Case("AWP101", "collected", s.KEPT, lambda t: [(t(4, 5),)], kinds=SAFE, has="found.append(best)"),
    Case("AWP101", "experts hit", s.HIT, lambda t: [(t(3, 4), t.ids(4, 5))], kinds=("plain", "strided", "nan"),
         has="hit.flatten().tolist()", lacks=".item()"),
    Case("AWP101", "boxes", s.BOXES, lambda t: [(lambda x: x.clone(), t(5, 2), t(5, 3))],
         kinds=("plain", "strided", "empty"), has="zip(boxes.round().int().tolist(), prototypes)",
         lacks="wide.double().cpu()"),
    Case("AWP101", "cut rows", s.CUT, lambda t: [(lambda ids: t.fixed(16)[ids % 16, None], t.ids(3, 5, 4))],
         kinds=("plain", "strided", "empty"), has="output_host[row][mask_host[row]].detach())", lacks="output[row]["),
    Case("AWP102", "select", s.SELECT, _masked, kinds=SAFE, has="torch.where(after > before", lacks="if after"),
    Case("AWP102", "returned", s.RETURNED, lambda t: [(t(3, 4), t(3, 4))], kinds=("plain", "strided", "nan"),
         has="return torch.where(spread < 1e-5, frames - frames.mean()", lacks="else:"),
    Case("AWP102", "check", s.CHECK, _loops, kinds=SAFE, has="failed = failed |"),
    Case("AWP102", "nested", s.NESTED, _loops, kinds=SAFE, has="failed_2 = failed_2 |"),
    Case("AWP102", "guarded", s.GUARDED, _masked, kinds=SAFE, has="torch.where(padded", lacks="padded.any()"),
    Case("AWP102", "mask looked at", "AWP102/bad_mask_all.py", lambda t: [(t, t(2, 5, 4), t.mask(2, 5).long())],
         "\ndef run(t, x, mask):\n    return t.place(Decoder(4, 2))(x, mask)\n"),
    Case("AWP102", "and, or", "AWP102/bad_and_or.py", lambda t: [(t, t(2, 5, 4), t.layers())],
         "\ndef run(t, x, layers):\n    return t.place(Gate(layers))(x, True, None)\n"),
    Case("AWP102", "choice of sign", "AWP102/bad_decode_stop.py", lambda t: [(t(5, 4), t(5, 4))],
         "\ndef run(x, y):\n    return infer(lambda a, b: torch.sin(a * 3 + b), x, [0.5, 0.25])\n"),
    Case("AWP102", "half", s.HALF, lambda t: [(t(3, 4),)], kinds=SAFE, has="if hidden_states.dtype == torch.float16:"),
    Case("AWP103", "builtins", s.BUILTINS, lambda t: [(t(4), t.ids(3, 5))], has="groupby(letters.tolist())",
         lacks="any(flags)", kinds=("plain", "strided")),
    Case("AWP103", "norms and paths", "AWP103/bad_builtins.py",
         lambda t: [(t, t(2, 5, 4), t.mask(2, 5), t.layers())],
         "\ndef run(t, x, mask, layers):\n"
         "    words = CTCDecoder()(x)  # tensors that became numbers, of the same value\n"
         "    return t.place(Longformer(layers))(x, mask), [[int(k) for k in word] for word in words]\n",
         ("plain", "strided", "empty")),
    Case("AWP104", "lengths", s.LENGTHS, lambda t: [(t(3, 2), t.mask(3, 4).long())], has="lengths.tolist()"),
    Case("AWP104", "grid", s.GRID, lambda t: [(torch.tensor([[1, 2, 3], [2, 2, 2]], device=t.device),)],
         has="grid_thw.tolist()", kinds=PLAIN),
    Case("AWP104", "tower", "AWP104/bad_grid.py", lambda t: [(t.fixed(3, 6), torch.tensor([[1, 2, 3], [2, 2, 3]]))],
         "\ndef run(x, grid):\n    return Tower()(x, grid.to(x.device))\n", PLAIN),
    Case("AWP104", "bounds", "AWP104/bad_lengths.py", lambda t: [(t, t(2, 5, 4), t.mask(2, 5).long(), t.layers())],
         "\ndef run(t, x, mask, layers):\n    mask[:1] = 1\n    return Video(layers)(x, mask)\n"),
    Case("AWP104", "trimmed", s.TRIM, lambda t: [(t.ids(3, 4, 5),)], kinds=("plain", "strided", "empty"),
         has="(row == pad).sum().item()"),
    Case("AWP104", "widths", s.WIDTHS, lambda t: [(t(3, 5), t.mask(3, 5))], has="widest = int(widest)"),
    Case("AWP105", "suppression", "AWP105/bad_suppression.py", lambda t: [(t(9, 4), t(9)), (t(1, 4), t(1))], """
def run(boxes, scores):
    boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs()], dim=1)
    return suppress(boxes, scores, 0.1), strongest(scores, boxes, 0.1) if len(scores) > 0 else None
""", kinds=("plain", "strided"), has="boxes, scores = boxes.cpu(), scores.cpu()"),
    Case("AWP105", "index", s.INDEX, lambda t: [(torch.tensor([9.0, 5.0, 5.0, 1.0]),)], kinds=PLAIN,
         has=".cpu().nonzero()"),
    Case("AWP105", "penalty", s.PENALTY, _masked, kinds=SAFE, has="copy_(torch.where(seen"),
    Case("AWP105", "written through a mask", "AWP105/bad_mask_assign.py",
         lambda t: [(t, t(2, 5, 4) * 5, t.mask(2, 5).long())],
         "\ndef run(t, x, mask):\n    return t.place(Padded(4, 2))(x, mask)\n", SAFE),
    Case("AWP106", "synchronised steps", "AWP106/bad_step_sync.py", lambda t: [(t, t(2, 4), t.layers())],
         "\ndef run(t, x, layers):\n    return Pipeline(lambda a, b: a * 0.9 + b)(x, 3), Decoder(layers)(x)\n"),
    Case("AWP107", "progress", "AWP107/bad_progress.py", lambda t: [(t(2, 4), t.mask(2).long(), t.layers())],
         "\ndef run(x, mask, layers):\n    return Pipeline(lambda a, b: a * 0.1)(x, 3), Decoder(layers)(x, mask)\n",
         ("plain", "strided", "nan")),
    Case("AWP108", "invariant", s.INVARIANT, lambda t: [(t(3), torch.tensor([0, 3, 7], device=t.device))],
         has="longest =", kinds=SAFE),
    Case("AWP108", "read again and again", "AWP108/bad_longest.py",
         lambda t: [(t, t(6, 4), torch.tensor([0, 4, 6], device=t.device), t.fixed(1))],
         "\ndef run(t, x, bounds, guidance):\n    torch.manual_seed(0)\n    tower = t.place(Tower(4, 2))\n"
         "    return tower(x, bounds), Pipeline(lambda a, b: a * 0.5)(x, guidance, 3)\n"),
    Case("AWP109", "checked every few tokens", "AWP109/bad_finished.py", lambda t: [(t.model(5), t.ids(5, 3, 2))],
         """
def run(model, ids):
    # the few tokens behind the end are the price; rows are compared up to their first end
    rows = generate(model, ids, 24, 2)[:, 2:].tolist()
    return [row[: row.index(2) + 1] if 2 in row else row for row in rows]
""", ("plain", "strided")),
    Case("AWP111", "top k", s.TOPK, lambda t: [(torch.arange(8, device=t.device)[None],)], kinds=PLAIN,
         has="log_softmax(logits.float()", lacks=".cpu()"),
)  # fmt: skip

FUSION = (
    Case("AWP204", "chosen experts", "AWP204/bad_chosen_experts.py", lambda t: [(t, t(7, 8)), (t, t(1, 8))], """
def run(t, x):
    torch.manual_seed(0)
    return [t.place(kind(8, 6))(x) for kind in (Compared, Masked, First, Summed)]
""", kinds=FILLED, has="for number in picked.unique().tolist():"),
    Case("AWP205", "repetition", s.REPEATED_TOKENS, lambda t: [(t.ids(9, 4, 6), t(4, 9))], kinds=SAFE,
         has="torch.where(seen < 0, seen * self.penalty, seen / self.penalty)", lacks="for i in"),
    Case("AWP206", "loaders", "AWP206/bad_loaders.py", lambda t: [(t.device,)], """
class Numbers(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.full((3,), float(index))


def run(device):
    def model(batch):
        return batch.sin()
    return embed(model, Numbers()), score(model, Numbers()), features(model, Numbers())
""", PLAIN, dtypes=_ONE),
    Case("AWP207", "padded", "AWP207/bad_one_length.py", _NONE,
         "\ndef run():\n    return classify(['ab', 'abcdef']), Reranker('abc').predict('ab', ['c', 'defg'])\n", PLAIN,
         dtypes=_ONE),
    Case("AWP301", "compiled chain", "AWP301/bad_chains.py", lambda t: [(t, t(2, 5, 8), t(2, 5, 8))], """
def run(t, x, residual):
    return t.place(Gated(8))(x, residual)
""", PLAIN, dtypes=_ONE),
    Case("AWP302", "layer norms", "AWP302/bad_layer_norms.py", lambda t: [(t, t(2, 5, 8))], """
def run(t, x):
    return [t.place(LayerNorm(8))(x), t.place(Compact(8))(x), t.place(Deviation(8))(x), ChannelsFirst()(x)]
"""),
    Case("AWP302", "RMS norms", "AWP302/bad_rms_norms.py", lambda t: [(t, t(2, 5, 8))], """
def run(t, x):
    return [t.place(kind(8))(x) for kind in (RMSNorm, Inline, Divided, Power)]
"""),
    Case("AWP303", "exponentials", "AWP303/bad_exponentials.py", lambda t: [(t(3, 9), t(3, 4))], """
def run(logits, hidden_states):
    return Sampler()(logits, hidden_states)
"""),
    Case("AWP303", "GELU, SiLU", "AWP303/bad_gelu_silu.py", lambda t: [(t, t(3, 8))], """
def run(t, x):
    torch.manual_seed(0)
    deep = t.place(StepByStep(8), Swish(8))
    return [NewGELU()(x), FastGELU()(x), ErfGELU()(x), *(module(x) for module in deep)]
"""),
    Case("AWP305", "head on every position", "AWP305/bad_last_position.py",
         lambda t: [(t, t(2, 5, 8), t.layers(dim=8))], """
def run(t, x, layers):
    torch.manual_seed(0)
    decoder, inline = t.place(Decoder(layers, 8, 6), Inline(8, 6))
    return decoder(x), inline(x)
"""),
    Case("AWP306", "invariants of loops", "AWP306/bad_loop_invariants.py",
         lambda t: [(t, t(2, 5, 8), t.mask(2, 5).to(t.dtype), t.layers(dim=8), t.fixed(1, 4))], """
class Scheduler:
    def step(self, noise, t, latents):
        return latents - noise * 0.1 * t


def run(t, x, mask, layers, prompt):
    def unet(latents, table, embeds, guidance):
        return latents * table.mean().to(latents.dtype) + embeds.mean() + guidance.mean().to(latents.dtype)
    return t.place(Decoder(layers, 8))(x, mask), Pipeline(unet, Scheduler())(x, prompt, 2.5, [3, 2, 1])
"""),
    Case("AWP307", "repeated", "AWP307/bad_repeated.py", lambda t: [(t, t(8, 8, 8), t.mask(8, 8, 8).long())], """
def run(t, x, mask):
    torch.manual_seed(0)
    return t.place(Attention(8))(x, mask)
""", SAFE),
    Case("AWP307", "copied to be read", "AWP307/bad_copied_to_be_read.py", lambda t: [(t, t(1, 4), t.fixed(1, 4))],
         """
def run(t, latents, prompt):
    model = t.place(Guidance(lambda both, rows: both[:1] * rows[0].mean(), 4))
    return model(latents, prompt), model.state
""", SAFE),
    Case("AWP310", "an adapter", "AWP310/bad_peft.py", _NONE, "\ndef run():\n    return complete('abc')\n", PLAIN,
         dtypes=_ONE),
    Case("AWP310", "a style", "AWP310/bad_diffusers.py", _NONE, "\ndef run():\n    return paint('abc')\n", PLAIN,
         dtypes=_ONE),
    Case("AWP311", "channels last", "AWP311/bad_half_networks.py", lambda t: [(t.fixed(2, 3, 12, 12),)],
         "\ndef run(images):\n    return predict(images)\n", PLAIN, dtypes=(torch.float16,)),
    Case("AWP312", "outputs nobody reads", "AWP312/bad_unread.py", lambda t: [(t.ids(9, 2, 5),)],
         "\ndef run(ids):\n    return predict(ids), generate('abc')\n", ("plain", "strided"), dtypes=_ONE),
    Case("AWP405", "compiled steps", "AWP405/bad_default.py", lambda t: [(t, t.fixed(2, 8), t.layers(1, 8))],
         "\ndef run(t, x, layers):\n    return Pipeline(layers[0]).infer(x, t.fixed(4))\n", PLAIN, dtypes=_ONE),
)  # fmt: skip

ATTENTION = (
    Case("AWP501", "matmul", "AWP501/bad_matmul.py",
         lambda t: [(t, t(2, 7, 48), None), (t, t(2, 7, 48), torch.full((7, 7), float("-inf")).triu(1))], """
def run(t, x, mask):
    torch.manual_seed(0)
    return t.place(Attention(48, 3))(x, mask if mask is None else mask.to(x.device, x.dtype))
""", FILLED),
    Case("AWP501", "operators", "AWP501/bad_operators.py", lambda t: [_qkv(t, 6, 6, 6)],
         "\ndef run(q, k, v):\n    return Causal(16)(q, k, v), Plain()(q * 0.3, k, v)\n", ("plain", "strided")),
    Case("AWP501", "einsum", "AWP501/bad_einsum.py", lambda t: [(*_qkv(t, 5, 7, 7), t.fixed(5, 7), t(6, 5, 7))], """
def run(q, k, v, bias, alibi):
    flat = [one.flatten(0, 1) for one in (q, k, v)]
    return Einsum(16)(q, k, v, bias), WithBias(0.3)(*flat, alibi)
""", FILLED),
    Case("AWP502", "fused attention", "AWP502/bad_eager.py", lambda t: [(t.ids(9, 2, 5).cpu(),)],
         "\ndef run(ids):\n    lm.float().eval()\n    return lm(ids).logits\n", PLAIN, dtypes=_ONE),
    Case("AWP503", "heads as they are", "AWP503/bad_repeat.py",
         lambda t: [(t(2, 6, 5, 16), t(2, 2, 5, 16), t(2, 2, 5, 16))],
         "\ndef run(q, k, v):\n    return Attention(3)(q, k, v), Interleaved()(q, k, v)\n"),
    Case("AWP504", "causal", "AWP504/bad_tril.py", lambda t: [_qkv(t, n, n, n) for n in (1, 2, 7)],
         """
def run(q, k, v):
    # the second one's mask is float32, which the fused call refuses or misreads beside other types
    return Attention()(q, k, v), Upper()(q, k, v) if q.dtype == torch.float32 else None
""", ("plain", "strided", "empty")),
    Case("AWP506", "growing cache, branched and cut", "AWP506/bad_cache_object.py", lambda t: [(t,)], """
def run(t):
    cache, other, found = KVCache(), KVCache(), []
    for step in range(9):
        key, value = cache.append(t(2, 3, 1 + step % 3, 4), t(2, 3, 1 + step % 3, 4))
        found += [key, value]
        if step == 3:
            other.key, other.value = cache.key, cache.value
        if step == 6:
            cache.key, cache.value = cache.key[:, :, :5], cache.value[:, :, :5]
    return [*found, *other.append(t(2, 3, 2, 4), t(2, 3, 2, 4)), *found]
""", has="_appended(self.key, key, 2)", lacks="torch.cat((self.key, key)"),
    Case("AWP505", "no weights", "AWP505/bad_mha.py", lambda t: [(t, t(5, 5, 16), t(5, 5, 16))], """
def run(t, x, memory):
    torch.manual_seed(0)
    block = t.place(Block(16, 4))
    with torch.no_grad():
        return block(x, memory, torch.zeros(5, 5).to(x))
"""),
    Case("AWP507", "a cache", "AWP507/bad_generate.py", _NONE, "\ndef run():\n    return complete('abc')\n", PLAIN,
         dtypes=_ONE),
)  # fmt: skip

MEMORY = (
    Case("AWP601", "uploads", s.UPLOADS, lambda t: [(t(1),)], kinds=SAFE, has="@functools.cache"),
    Case("AWP601", "constants", "AWP601/bad_constants.py", lambda t: [(t(2, 5, 4), t.layers())],
         "\ndef run(x, layers):\n    return Model(layers)(x)\n", SAFE),
    Case("AWP601", "relative positions", s.RELATIVE, lambda t: [(t(2, 3), t.fixed(16, 4))], kinds=PLAIN,
         has="torch.arange(k_size, device=rel_pos_resized.device)", lacks="torch.arange(q_size)["),
    Case("AWP602", "chained", "AWP602/bad_chained.py", lambda t: [(t(2, 5, 4),)], """
def run(x):
    seen = []
    def layer(hidden_states, *rest):
        seen.append(rest)
        return hidden_states
    return Decoder([layer])(x), seen
""", SAFE),
    Case("AWP602", "a decode step", "AWP602/bad_decode_step.py", lambda t: [(t.model(), t.ids(9, 3, 4))],
         "\ndef run(model, ids):\n    return generate(model, ids, 3)\n", ("plain", "strided", "empty")),
    Case("AWP603", "positions", s.POSITIONS, lambda t: [(t(2, 5, 3), t.ids(9, 2, 1))], kinds=("plain", "empty"),
         has="cache_length + seq_length, device=inputs_embeds.device)", lacks="expand(3, batch_size, -1).to("),
    Case("AWP603", "pinned", "AWP603/bad_metadata.py", lambda t: [(t.model(), t.ids(9, 3, 4))], """
def run(model, ids):
    seen = []
    def noted(ids, *rest):
        seen.append([one.clone() for one in rest])
        return model(ids)
    return Runner(noted).generate(ids, [4, 3, 2], 3), seen
""", ("plain", "strided"), dtypes=_ONE),
    Case("AWP606", "table", s.TABLE, lambda t: [(t(5),)], has="if self.freqs.device != positions.device:",
         kinds=SAFE),
    Case("AWP606", "kept tables", "AWP606/bad_kept_tables.py", lambda t: [(t(5),)],
         "\ndef run(x):\n    rope = Rope(8)\n    return rope(x), rope(x), rope.freqs.dtype\n", SAFE),
    Case("AWP608", "loaded half", "AWP608/bad_half_after_load.py", lambda t: [(t.device,)], """
def run(device):
    found = []
    for model in (lm, *build(device)):
        found += [parameter.float().cpu() for parameter in model.parameters()]
        found += [parameter.dtype for parameter in model.parameters()]
    return found
""", PLAIN, dtypes=_ONE),
    Case("AWP701", "served", "AWP701/bad_served.py", lambda t: [(t, t.fixed(3, 4))], """
def run(t, x):
    import asyncio
    net = t.place(nn.Linear(4, 2))
    return embed(["ab", "cd"]), asyncio.run(tag([1.0, 2.0])), Classifier(net).predict(x), DetectionPredictor(net)(x)
"""),
    Case("AWP702", "inferring", "AWP702/bad_loaded.py", lambda t: [(t.fixed(2, 3, 8, 8).cpu(),)], """
def run(x):
    backbone.eval()
    net.eval()
    service = Service("net.pt")
    service.model.eval()  # what was meant, in both
    return predict(x), service(x)
""", PLAIN, dtypes=_ONE),
    Case("AWP703", "switches", "AWP703/bad_switches.py", lambda t: [(t, t.fixed(2, 512), t.fixed(512, 512))], """
def run(t, latents, keys):
    torch.manual_seed(0)
    model.to(torch.float32)
    try:
        return denoise(latents * 0.1, keys * 0.1, 1)
    finally:
        torch.set_float32_matmul_precision("highest")
""", PLAIN, dtypes=_ONE),
    Case("AWP706", "wide", "AWP706/bad_wide.py", lambda t: [(t(3, 64),)],
         "\ndef run(x):\n    return Sampler(lambda a, b: a.sin()).generate(x, 2).float()\n"),
)  # fmt: skip

SERVING = (
    Case("AWP801", "routes", "AWP801/bad_routes.py", _NONE, """
def run():
    import asyncio
    class Upload:
        async def read(self):
            return b"abcd"
    async def all_of_them():
        shown = [await classify("ab"), await caption("http://a"), await transcribe(Upload()), await slow()]
        return [*shown, await complete("ab"), await chat("ab"), await respond("ab")]
    return asyncio.run(all_of_them())
""", PLAIN, dtypes=_ONE),
    Case("AWP801", "a worker", "AWP801/bad_worker.py", _NONE, """
def run():
    import asyncio
    class Request:
        async def json(self):
            return {"texts": ["a", "b"]}
    return asyncio.run(api_generate(Request())), asyncio.run(api_embed(Request()))
""", PLAIN, dtypes=_ONE),
    Case("AWP802", "loaded once", "AWP802/bad_in_handlers.py", _NONE,
         "\ndef run():\n    return [[classify('ab'), embed(), transcribe()] for _ in range(2)]\n", PLAIN, dtypes=_ONE),
    Case("AWP804", "engines", "AWP804/bad_flags.py", _NONE, """
def run():
    switches = ("enforce_eager", "disable_cuda_graph", "eager_mode")
    return [{k: v for k, v in vars(one).items() if k not in switches} for one in (llm, args, plain, engine, config)]
""", PLAIN, dtypes=_ONE),
    Case("AWP811", "switches", "AWP811/bad_switches.py", lambda t: [(t.fixed(2, 8),)], """
def run(x):
    torch.manual_seed(0)
    model.reset_parameters()
    torch.autograd.set_detect_anomaly(False)
    torch.use_deterministic_algorithms(False)
    return model(x)
""", PLAIN, dtypes=_ONE),
    Case("AWP903", "collectives", "AWP903/bad_waits.py", lambda t: [(t, t(4, 4), t(2, 4))], """
def run(t, x, scores):
    torch.manual_seed(0)
    moe, attention = t.place(MoE(4), Attention(4))
    return moe(x), attention(x, scores), scores
"""),
)  # fmt: skip

CASES = (*SYNC, *FUSION, *ATTENTION, *MEMORY, *SERVING)
