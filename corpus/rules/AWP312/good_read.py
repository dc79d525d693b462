"""The extra outputs are read, by name, key or number."""

import torch
from transformers import AutoModel

encoder = AutoModel.from_pretrained("encoder").to("cuda").eval()


@torch.inference_mode()
def predict(input_ids: torch.Tensor) -> torch.Tensor:
    outputs = encoder(input_ids.to("cuda"), output_hidden_states=True)
    deep = torch.stack(outputs.hidden_states[-4:]).mean(0)
    by_key = encoder(input_ids, output_hidden_states=True)["hidden_states"][-2]
    by_number = encoder(input_ids, output_hidden_states=True)[2][-1]
    wanted = input_ids.shape[1] > 8
    maybe = encoder(input_ids, output_hidden_states=wanted)
    off = encoder(input_ids, output_hidden_states=False)
    return deep[:, 0] + by_key[:, 0] + by_number[:, 0] + maybe.last_hidden_state[:, 0] + off.last_hidden_state[:, 0]
