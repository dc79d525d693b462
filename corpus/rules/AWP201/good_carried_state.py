"""Each pass needs the result of the one before: nothing to batch."""

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, cell_model: nn.Module):
        super().__init__()
        self.cell_model = cell_model

    def forward(self, frames: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        for frame in frames:
            state = self.cell_model(frame, state)
        return state


@torch.inference_mode()
def chat(model: nn.Module, tokenizer, turns: list) -> list:
    history = []
    for message in turns:
        history.append(message)
        ids = tokenizer(" ".join(history), return_tensors="pt").input_ids.to("cuda")
        reply = tokenizer.decode(model.generate(ids)[0])
        history.append(reply)
    return history
