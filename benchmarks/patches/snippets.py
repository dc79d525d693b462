"""Snippets of hot code of the kinds that rules rewrite: each defines ``run``, which uses it."""

from __future__ import annotations

LOOP = """
import torch

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        seen = []
        for i, t in enumerate(timesteps):
            if t.item() > 0.5:
                latents = latents * t
            seen.append(float(t))
        return latents, seen

def run(latents, timesteps):
    return Pipeline()(latents.clone(), timesteps)
"""

GRID = """
import torch
from torch import nn

class Tower(nn.Module):
    def rot_pos_emb(self, grid_thw: torch.Tensor) -> torch.Tensor:
        pos_ids = []
        for t, h, w in grid_thw:
            rows = torch.arange(h).unsqueeze(1).expand(-1, w)
            pos_ids.append(rows.flatten().repeat(t, 1).flatten())
        return torch.cat(pos_ids)

    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
        return self.rot_pos_emb(grid_thw)

def run(grid):
    return Tower()(torch.zeros(1), grid)
"""

ROW = """
import torch
from torch import nn

class Tower(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor):
        sizes = []
        for block in self.blocks:
            grid_thw = grid_thw + block
            t, h, w = grid_thw[0].item(), grid_thw[1].item(), grid_thw[-1].item()
            sizes.append((t, h * w))
        return sizes

def run(grid):
    return Tower([1, 2])(torch.zeros(1), grid)
"""

INDEX = """
import torch

class Scheduler:
    def __init__(self, timesteps: torch.Tensor):
        self.timesteps = timesteps.to("cpu" if True else "cuda")

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        found = []
        for t in timesteps.cpu().tolist():
            indices = (timesteps == t).nonzero()
            position = 1 if len(indices) > 1 else 0
            found.append(indices[position].item())
        return found

def run(timesteps):
    return Pipeline()(timesteps, timesteps)
"""

RETURNED = """
import torch

def normalise(frames: torch.Tensor) -> torch.Tensor:
    spread = frames.std()
    if spread < 1e-5:
        return frames - frames.mean()
    return (frames - frames.mean()) / spread

def rescaled(noise: torch.Tensor, guided: torch.Tensor) -> torch.Tensor:
    if noise.std() > guided.std():
        return guided * (noise.std() / guided.std())
    else:
        return guided * 0.5

def clamped(noise: torch.Tensor, guided: torch.Tensor) -> torch.Tensor:
    if noise.std() > guided.std():
        return guided.clamp_(-1.0, 1.0)
    return guided

@torch.no_grad()
def run(x, y):
    found = []
    for step in range(3):
        x = x * 1.5 + y
        found += [normalise(x), normalise(x * 0), rescaled(x, y), rescaled(y, x), clamped(x, y.clone())]
    return found
"""

SELECT = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            before = hidden_states.abs().sum()
            after = hidden_states.square().sum()
            if after > before:
                limited = hidden_states / 2
                hidden_states = limited * 0.5 + hidden_states * 0.25
            if not torch.isfinite(hidden_states).all():
                hidden_states = torch.nan_to_num(hidden_states)
            hidden_states = hidden_states + 1 if (attention_mask == 0).any() else hidden_states - 1
        return hidden_states

def run(hidden_states, mask):
    return Decoder([1, 2, 3])(hidden_states.clone(), mask)
"""

CHECK = """
import torch

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        for t in timesteps:
            latents = latents + t
            if torch.isnan(latents).any():
                raise FloatingPointError("not a number")
        return latents

def run(latents, timesteps):
    try:
        return Pipeline()(latents.clone(), timesteps)
    except FloatingPointError as error:
        return str(error)
"""

NESTED = """
import torch

class Pipeline:
    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        for t in timesteps:
            for layer in range(3):
                latents = latents + t * layer
                if torch.isnan(latents).any():
                    raise FloatingPointError("inner")
            if torch.isinf(latents).any():
                raise FloatingPointError("outer")
        return latents

def run(latents, timesteps):
    try:
        return Pipeline()(latents.clone(), timesteps)
    except FloatingPointError as error:
        return "wrong number"
"""

GUARDED = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        padded = attention_mask == 0
        for layer in self.layers:
            hidden_states = hidden_states * 1.5
            if padded.any():
                hidden_states = torch.where(padded, 0.0, hidden_states)
                hidden_states = hidden_states.masked_fill(padded, -1.0)
        return hidden_states

def run(hidden_states, mask):
    return Decoder([1, 2])(hidden_states.clone(), mask)
"""

PENALTY = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        seen = attention_mask == 1
        for layer in self.layers:
            scores = hidden_states[seen]
            hidden_states[seen] = torch.where(scores > 0, scores / 1.3, scores * 1.3).to(scores.dtype)
        return hidden_states

def run(hidden_states, mask):
    hidden_states = hidden_states.clone()
    out = Decoder([1, 2])(hidden_states, mask)
    return out, hidden_states, out is hidden_states
"""

TOTALS = """
import torch

class Pipeline:
    def __init__(self):
        self.total = 1.5

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor):
        for t in timesteps:
            latents = latents * 0.9
            self.total += latents.float().mean().item()
        return self.total

def run(latents, timesteps):
    return Pipeline()(latents, timesteps)
"""

BUILTINS = """
import torch
from itertools import groupby
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, ids: torch.Tensor):
        found = []
        for layer in self.layers:
            flags = hidden_states.flatten() > 0.5
            norms = hidden_states.square().flatten()
            found.append((any(flags), all(flags), max(norms), min(norms)))
            letters = ids.flatten()
            found.append([int(k) for k, _ in groupby(letters)])
        return found

def run(hidden_states, ids):
    return Decoder([1])(hidden_states, ids)
"""

INVARIANT = """
import torch
from torch import nn

class Tower(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            longest = (cu_seqlens[1:] - cu_seqlens[:-1]).max().item()
            bias = (1.0 - hidden_states.new_ones(3) * 0.5) if False else 0.0
            hidden_states = hidden_states * longest + bias
        return hidden_states

def run(hidden_states, lengths):
    return Tower([1, 2])(hidden_states, lengths)
"""

UPLOADS = """
import torch
from torch import nn

class Norms(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, length: int, factor: float) -> torch.Tensor:
        for layer in self.layers:
            scale = torch.tensor([0.5, 1.0, 2.0], device=hidden_states.device)
            size = torch.tensor(length, device=hidden_states.device)
            half = torch.tensor([factor], device=hidden_states.device, dtype=hidden_states.dtype)
            hidden_states = hidden_states * scale.mean() + size + half
        return hidden_states

def run(hidden_states):
    return Norms([1, 2])(hidden_states, 7, 0.3)
"""

TABLE = """
import torch
from torch import nn

class Rope(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.freqs = torch.arange(0, dim, 2) / dim

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        freqs = self.freqs.to(positions.device, positions.dtype)
        return torch.outer(positions, freqs)

def run(positions):
    rope = Rope(8)
    return rope(positions), rope(positions), rope.freqs.dtype
"""

LENGTHS = """
import torch
from torch import nn

class Transformer(nn.Module):
    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        batch_size = hidden_states.shape[0]
        lengths = attention_mask.sum(dim=1)
        mask = torch.zeros_like(attention_mask)
        for i in range(batch_size):
            mask[i, : lengths[i]] = 1
        return mask

def run(hidden_states, mask):
    return Transformer()(hidden_states, mask)
"""

TOPK = """
import torch

class Generator:
    def __init__(self, model):
        self.model = model

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, max_new_tokens: int):
        found = []
        for _ in range(max_new_tokens):
            logits = self.model(ids)
            scores = torch.log_softmax(logits.float().cpu(), dim=-1)
            values, tokens = scores.topk(3, dim=-1)
            found.append((values.tolist(), tokens.tolist()))
        return found

def run(ids):
    return Generator(lambda x: torch.sin(x.float() * 3.1)).generate(ids, 2)
"""

HALF = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = hidden_states * layer
            if hidden_states.dtype == torch.float16 and not torch.isfinite(hidden_states).all():
                clamp_value = torch.finfo(hidden_states.dtype).max - 1000
                hidden_states = torch.clamp(hidden_states, min=-clamp_value, max=clamp_value)
        return hidden_states

def run(hidden_states):
    return Decoder([2.0, 300.0, 2000.0])(hidden_states.clone())
"""

CROPS = """
import torch
from torch import nn

class Tower(nn.Module):
    def crop(self, images: torch.Tensor, sizes: torch.Tensor) -> list:
        return [image[: int(size[0] / 8), : int(size[1] / 8)] for image, size in zip(images, sizes)]

    def forward(self, hidden_states: torch.Tensor, sizes: torch.Tensor, times: torch.Tensor) -> list:
        found = []
        for crop, (t, h, w) in zip(self.crop(hidden_states, sizes), times):
            found.append(crop.reshape(t, h, w))
        return found

def run(hidden_states, sizes, times):
    return Tower()(hidden_states, sizes, times)
"""

HIT = """
import torch
from torch import nn

class Experts(nn.Module):
    def forward(self, hidden_states: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(hidden_states)
        hit = torch.bincount(picked, minlength=4).nonzero(as_tuple=False)
        for expert in hit:
            number = int(expert.item())
            out = out + hidden_states * number
        return out

def run(hidden_states, picked):
    return Experts()(hidden_states, picked)
"""

WIDTHS = """
import torch
from torch import nn

class Attention(nn.Module):
    def _widest(self, mask: torch.Tensor):
        counts = mask.long().sum(dim=1)
        widest = counts.max()
        positions = torch.arange(widest, device=mask.device)
        return widest, positions

    def _cut(self, hidden_states: torch.Tensor, widest):
        left = hidden_states.narrow(1, 0, widest)
        right = hidden_states.narrow(1, widest, hidden_states.size(1) - widest)
        if left.shape != (hidden_states.shape[0], widest):
            raise ValueError(f"not {widest} wide")
        return left, right

    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor):
        widest, positions = self._widest(mask)
        return self._cut(hidden_states, widest), positions

class Model(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor):
        found = []
        for layer in self.layers:
            found.append(layer(hidden_states, mask))
        return found

def run(hidden_states, mask):
    return Model(2)(hidden_states, mask)
"""

TRIM = """
import torch

class Generator:
    @torch.no_grad()
    def generate(self, rows: torch.Tensor, pad: int, eos: int):
        rows = rows.to("cuda")
        found = []
        for row in rows:
            padding = (row == pad).sum()
            if pad == eos:
                padding -= 1
            if padding > 0:
                row = row[:-padding]
            found.append(row)
        return found

def run(rows):
    return Generator().generate(rows, 1, 1), Generator().generate(rows, 1, 2)
"""

KEPT = """
import torch

class Generator:
    @torch.no_grad()
    def generate(self, rows: torch.Tensor, limit: int):
        rows = rows.to("cuda")
        found = []
        for step in range(limit):
            best = rows[step].argmax()
            found.append(best.item())
        return found

def run(rows):
    return Generator().generate(rows, len(rows)), Generator().generate(rows, 0)
"""

BOXES = """
import torch
from torch import nn

@torch.inference_mode()
def find(model: nn.Module, images: torch.Tensor, prototypes: torch.Tensor):
    boxes = model(images)
    found = []
    for box, prototype in zip(boxes, prototypes):
        left, top = box.round().int().tolist()
        found.append((left, top, prototype))
    scores = []
    for number, score in enumerate(boxes):
        scores.append((number, score.float().cpu().numpy()))
    kept = [wide.double().cpu() for wide in boxes]
    return found, [(number, torch.from_numpy(score)) for number, score in scores], kept

def run(model, images, prototypes):
    return find(model, images, prototypes)
"""

CUT = """
import torch
from torch import nn

@torch.inference_mode()
def encode(model: nn.Module, tokens: torch.Tensor, texts: list):
    output = model(tokens)
    mask = (tokens != 0).to(output.device)
    vectors = []
    for row in range(len(texts)):
        vectors.append(output[row][mask[row]].detach().cpu())
    whole = []
    for row, text in enumerate(texts):
        whole.append((text, output[row].tolist()))
    return vectors, whole

def run(model, tokens):
    return encode(model, tokens, ["a"] * tokens.shape[0])
"""

REPEATED_TOKENS = """
import torch

class Repetition:
    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for i in range(input_ids.shape[0]):
            for token in set(input_ids[i].tolist()):
                if scores[i, token] < 0:
                    scores[i, token] *= self.penalty
                else:
                    scores[i, token] = scores[i, token] / self.penalty
        return scores

def run(ids, scores):
    return Repetition(1.3)(ids, scores)
"""

RELATIVE = """
import torch
from torch import nn
import torch.nn.functional as F

class Layer(nn.Module):
    def get_rel_pos(self, q_size: int, k_size: int, rel_pos: torch.Tensor) -> torch.Tensor:
        furthest = int(2 * max(q_size, k_size) - 1)
        rel_pos_resized = rel_pos.cuda()[:furthest]
        q_coords = torch.arange(q_size)[:, None] * max(k_size / q_size, 1.0)
        k_coords = torch.arange(k_size)[None, :] * max(q_size / k_size, 1.0)
        relative_index = (q_coords - k_coords) + (k_size - 1) * max(q_size / k_size, 1.0)
        return rel_pos_resized[relative_index.long()]

    def forward(self, hidden_states: torch.Tensor, rel_pos: torch.Tensor):
        return self.get_rel_pos(5, 3, rel_pos), self.get_rel_pos(2, 7, rel_pos), self.get_rel_pos(4, 4, rel_pos)

class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, hidden_states: torch.Tensor, rel_pos: torch.Tensor):
        return [layer(hidden_states, rel_pos) for layer in self.layers]

def run(x, rel_pos):
    return Layers()(x, rel_pos)
"""

POSITIONS = """
import torch
from torch import nn

class Layer(nn.Module):
    def place(self, inputs_embeds: torch.Tensor, rope_deltas: torch.Tensor, attention_mask=None, cache_length: int = 3):
        batch_size, seq_length, _ = inputs_embeds.shape
        if attention_mask is not None:
            position_ids = attention_mask.long().cumsum(-1) - 1
            position_ids = position_ids.view(1, batch_size, -1).repeat(3, 1, 1).to(inputs_embeds.device)
        else:
            position_ids = torch.arange(cache_length, cache_length + seq_length)
            position_ids = position_ids.view(1, 1, -1).expand(3, batch_size, -1).to(inputs_embeds.device)
        return position_ids + rope_deltas.to(device=inputs_embeds.device)

    def forward(self, hidden_states: torch.Tensor, rope_deltas: torch.Tensor):
        return self.place(hidden_states, rope_deltas)

class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, hidden_states: torch.Tensor, rope_deltas: torch.Tensor):
        return [layer(hidden_states, rope_deltas) for layer in self.layers]

def run(x, deltas):
    return Layers()(x, deltas)
"""
