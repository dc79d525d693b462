"""A program that scores whole texts with the model that it also continues them with."""

import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self, dim: int, vocabulary: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(tokens))


@torch.inference_mode()
def score(scorer: Scorer, text: list[int]) -> float:
    tokens = torch.tensor([text], device="cuda")
    chances = scorer(tokens).log_softmax(-1)
    return float(chances[:, :-1].gather(-1, tokens[:, 1:, None]).sum())


@torch.inference_mode()
def following(scorer: Scorer, text: list[int]) -> int:
    return int(scorer(torch.tensor([text], device="cuda"))[:, -1].argmax(-1))


def main() -> None:
    scorer = Scorer(64, 1000).to("cuda").eval()
    while True:
        text = [ord(letter) for letter in input("text: ")]
        print(score(scorer, text), following(scorer, text))


if __name__ == "__main__":
    main()
