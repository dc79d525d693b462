"""Tables below an engine's compiled class, in branches for compilers or missing libraries; walks that stop early."""

import torch
from engine.compilation import support_torch_compile
from torch import nn

try:
    import flash_attn

    _HAS_FLASH_ATTN = True
except ImportError:
    _HAS_FLASH_ATTN = False


class Layer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device) / x.shape[1]
        return self.proj(x) + positions[:, None] + bias


@support_torch_compile
class Model(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Layer(dim) for _ in range(depth)])

    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            bias = (1.0 - attention_mask[:, :, None]) * -10000.0
            x = layer(x, bias)
        return x


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: torch.Tensor, cache) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if cache.is_compileable:
            slots = torch.arange(x.shape[1], device=x.device) + cache.length
            k = k.index_copy(1, slots, k)
        if _HAS_FLASH_ATTN:
            return flash_attn.flash_attn_func(q, k, v, causal=True)
        mask = torch.arange(x.shape[1], device=x.device).unsqueeze(1) + 1 > torch.arange(x.shape[1], device=x.device)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Decoder(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Attention(dim) for _ in range(depth)])

    @property
    def first_attention(self) -> nn.Module | None:
        for module in self.modules():
            if isinstance(module, Attention):
                return module
        return None

    @torch.inference_mode()
    def generate(self, x: torch.Tensor, cache, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            attention = self.first_attention or next(m for m in self.modules() if isinstance(m, Attention))
            x = x + attention.qkv.bias[: x.shape[-1]]
            for layer in self.layers:
                x = layer(x, cache)
        return x
