"""A decode loop whose step is a method of the same object: the model is called in there."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, dim: int, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.head = nn.Linear(dim, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(ids))


class Sampler:
    def __init__(self, draft: Decoder):
        self.draft = draft

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.draft(tokens)[:, -1].argmax(-1, keepdim=True)

    @torch.inference_mode()
    def generate(self, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):  # expect: AWP401
            tokens = torch.cat((tokens, self.step(tokens)), dim=1)
        return tokens


if __name__ == "__main__":
    sampler = Sampler(Decoder(64, 1000).to("cuda").eval())
    while True:
        sampler.generate(torch.tensor([[int(input("prompt: "))]], device="cuda"), 32)
