"""`from_pretrained`, TorchScript and weights for another purpose."""

import torch
from torch import nn
from transformers import AutoModel

model = AutoModel.from_pretrained("encoder").to("cuda")
script = torch.jit.load("net.ts").cuda()


class Scaler:
    def __init__(self):
        self.scale = 1.0

    def load_state_dict(self, state: dict) -> None:
        self.scale = state["scale"]


scaler = Scaler()
scaler.load_state_dict({"scale": 2.0})


@torch.inference_mode()
def predict(input_ids: torch.Tensor) -> torch.Tensor:
    return model(input_ids.cuda()).last_hidden_state * scaler.scale + script(input_ids)
