"""A program whose callers of a model all take the last position of its logits."""

import torch
from torch import nn


class Writer(nn.Module):
    def __init__(self, dim: int, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.embed(tokens)
        return self.head(hidden).float(), hidden  # expect: AWP305


@torch.inference_mode()
def answer(writer: Writer, prompt: list[int]) -> int:
    logits, _ = writer(torch.tensor([prompt], device="cuda"))
    return int(logits[:, -1].argmax(-1))


def main() -> None:
    writer = Writer(64, 1000).to("cuda").eval()
    while True:
        print(answer(writer, [ord(letter) for letter in input("prompt: ")]))


if __name__ == "__main__":
    main()
