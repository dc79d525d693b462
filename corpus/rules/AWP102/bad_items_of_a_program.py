"""A program that asks the device once for each of its pictures: all callers are seen."""

import torch
from torch import nn


def normalised(image: torch.Tensor) -> torch.Tensor:
    spread = image.std()
    if spread < 1e-5:  # expect: AWP102
        return image - image.mean()
    return (image - image.mean()) / spread


@torch.inference_mode()
def classify(model: nn.Module, images: list[torch.Tensor]) -> list[torch.Tensor]:
    found = []
    for image in images:
        found.append(model(normalised(image.to("cuda"))))
    return found


def main() -> None:
    model = nn.Linear(64, 10).to("cuda").eval()
    while True:
        count = int(input("images: "))
        print(len(classify(model, [torch.rand(64) for _ in range(count)])))


if __name__ == "__main__":
    main()
