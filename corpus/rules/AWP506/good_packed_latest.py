"""Latest positions that are packed when there are many: what is copied does not grow."""

import torch
from torch import nn


class PackedCache:
    def __init__(self, latest: int):
        self.latest = latest
        self.packed: list[torch.Tensor] = []
        self.key = torch.empty(0)
        self.value = torch.empty(0)

    def append(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.key.numel() and self.key.shape[2] >= self.latest:
            self.packed += [self.key.to(torch.float8_e4m3fn), self.value.to(torch.float8_e4m3fn)]
            self.key = torch.tensor([], device=key.device)
            self.value = torch.tensor([], device=key.device)
        self.key = torch.cat([self.key, key], dim=2)  # expect[low]: AWP506
        self.value = torch.cat([self.value, value], dim=2)  # expect[low]: AWP506
        return self.key, self.value


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: torch.Tensor, cache: PackedCache) -> torch.Tensor:
        query, key, value = self.qkv(x)[:, None].chunk(3, dim=-1)
        key, value = cache.append(key, value)
        return nn.functional.scaled_dot_product_attention(query, key, value)[:, 0]


class Model(nn.Module):
    def __init__(self, dim: int, depth: int, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList([Attention(dim) for _ in range(depth)])
        self.lm_head = nn.Linear(dim, vocabulary)

    def forward(self, ids: torch.Tensor, caches: list[PackedCache]) -> torch.Tensor:
        x = self.embed(ids)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.lm_head(x[:, -1])


@torch.inference_mode()
def generate(model: Model, ids: torch.Tensor, max_new_tokens: int) -> list[torch.Tensor]:
    caches = [PackedCache(128) for _ in model.layers]
    tokens = [ids]
    for _ in range(max_new_tokens):
        tokens.append(model(tokens[-1], caches).argmax(-1, keepdim=True))
    return tokens


if __name__ == "__main__":
    model = Model(64, 4, 1000).to("cuda").eval()
    while True:
        generate(model, torch.tensor([[int(input("prompt: "))]], device="cuda"), 32)
