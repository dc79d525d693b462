"""A cache of its own: its parts are named plainly, its class says what they are."""

import torch
from torch import nn


def _appended(past, new, dim):
    """`torch.cat((past, new), dim)`, but `new` goes into spare room behind `past` where there is some."""
    plain = past.dim() == new.dim() and past.dtype == new.dtype and past.device == new.device
    if not plain or past.requires_grad or new.requires_grad:
        return torch.cat((past, new), dim)
    length, total = past.shape[dim], past.shape[dim] + new.shape[dim]
    whole = list(new.shape)
    whole[dim] = length
    if list(past.shape) != whole:
        return torch.cat((past, new), dim)
    room, used = getattr(past, "_room", ([None], -1))
    if used != length or len(room) != 2 or room[1] != length or room[0].shape[dim] < total:
        whole[dim] = 1 << total.bit_length()
        room = [past.new_empty(whole), total]
        room[0].narrow(dim, 0, length).copy_(past)
    room[0].narrow(dim, length, total - length).copy_(new)
    room[1] = total
    joined = room[0].narrow(dim, 0, total)
    joined._room = room, total
    return joined


class KVCache:
    def __init__(self):
        self.key = None
        self.value = None

    def append(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.key is not None:
            key = _appended(self.key, key, 2)
            value = _appended(self.value, value, 2)
        self.key, self.value = key, value
        return key, value


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: torch.Tensor, cache: KVCache) -> torch.Tensor:
        query, key, value = self.qkv(x)[:, None].chunk(3, dim=-1)
        key, value = cache.append(key, value)
        return nn.functional.scaled_dot_product_attention(query, key, value)[:, 0]


class Model(nn.Module):
    def __init__(self, dim: int, depth: int, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList([Attention(dim) for _ in range(depth)])
        self.lm_head = nn.Linear(dim, vocabulary)

    def forward(self, ids: torch.Tensor, caches: list[KVCache]) -> torch.Tensor:
        x = self.embed(ids)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.lm_head(x[:, -1])


@torch.inference_mode()
def generate(model: Model, ids: torch.Tensor, max_new_tokens: int) -> list[torch.Tensor]:
    caches = [KVCache() for _ in model.layers]
    tokens = [ids]
    for _ in range(max_new_tokens):
        tokens.append(model(tokens[-1], caches).argmax(-1, keepdim=True))
    return tokens


if __name__ == "__main__":
    model = Model(64, 4, 1000).to("cuda").eval()
    while True:
        generate(model, torch.tensor([[int(input("prompt: "))]], device="cuda"), 32)
