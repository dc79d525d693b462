"""One forward needs no cache; training; the flag is a variable."""

import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()


@torch.inference_mode()
def predict(ids: torch.Tensor) -> torch.Tensor:
    return model(ids, use_cache=False).logits


def generate(ids: torch.Tensor, use_cache: bool) -> torch.Tensor:
    return model.generate(ids, use_cache=use_cache)


def train(loader, optimizer) -> None:
    for batch in loader:
        model.generate(batch, use_cache=False)
        model(batch, use_cache=False).loss.backward()
        optimizer.step()
