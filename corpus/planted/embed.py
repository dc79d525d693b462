"""An embedding service: each request brings a list of texts, which are encoded one by one.

python embed.py --device cuda --size gpu --seconds 20
python embed.py --truth          times its own planted statements and prints JSON
"""

from __future__ import annotations

import sys

import torch
from common import Options, Served, parse, requests_for
from torch import nn

TEXTS = [f"text number {number}, somewhat longer than the one before" for number in range(8)]
LAYERS = 4
LENGTH = 32
DIM = 256
SIZES = {"cpu": 1 << 14, "gpu": 1 << 24}


class Encoder(nn.Module):
    """An embedding lookup, then two pointwise kernels a layer on a working buffer, then a mean."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(256, DIM)
        self.gains = nn.ParameterList(torch.tensor(1.0) for _ in range(LAYERS))
        self.register_buffer("work", torch.linspace(-1.0, 1.0, size))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        work = self.work
        for gain in self.gains:
            work = torch.tanh(work * gain)
        return self.table(tokens).mean(dim=1) + work[:DIM]


class EmbeddingService:
    def __init__(self, encoder: Encoder, device: torch.device) -> None:
        self.encoder = encoder
        self.device = device
        self.norms: list[float] = []

    def tokens(self, text: str) -> torch.Tensor:
        data = text.encode()[:LENGTH].ljust(LENGTH)
        return torch.tensor([list(data)], device=self.device)

    @torch.inference_mode()
    def embed(self, samples: list[str]) -> list[list[float]]:
        vectors = []
        for sample in samples:
            vector = self.encoder(self.tokens(sample))
            position = torch.zeros(DIM).to(self.device)
            vector = vector + position
            self.norms.append(vector.square().sum().item())
            vectors.append(vector[0].cpu())
        return [vector.tolist() for vector in vectors]

    @torch.inference_mode()
    def similarity(self, samples: list[str]) -> float:
        encoded = [self.encoder(self.tokens(sample)) for sample in samples]
        scores = torch.cat(encoded) @ encoded[0][0]
        return max(score.item() for score in scores)


def serve(options: Options) -> Served:
    device = torch.device(options.device)
    torch.manual_seed(0)
    service = EmbeddingService(Encoder(SIZES[options.size]).to(device).eval(), device)
    served = 0
    for request in requests_for(options.seconds):
        service.embed(TEXTS)
        service.similarity(TEXTS[:4])
        served = request + 1
    return Served(served, served)


def main() -> int:
    options = parse(__doc__)
    if options.truth:
        from truth import print_truth

        print_truth(__file__, options)
    elif options.around:
        from truth import measure_around

        measure_around(__file__, serve, options)
    else:
        print(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
