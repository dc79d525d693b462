"""Someone else may read the result."""

import torch
from transformers import AutoModel, AutoModelForCausalLM

encoder = AutoModel.from_pretrained("encoder").to("cuda").eval()
lm = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()


@torch.inference_mode()
def embed(input_ids: torch.Tensor):
    return encoder(input_ids.to("cuda"), output_hidden_states=True)


@torch.inference_mode()
def pool(input_ids: torch.Tensor, pooler) -> torch.Tensor:
    outputs = encoder(input_ids.to("cuda"), output_hidden_states=True)
    print(outputs.last_hidden_state.shape)
    return pooler(outputs)


@torch.inference_mode()
def generate(input_ids: torch.Tensor) -> torch.Tensor:
    out = lm.generate(input_ids, return_dict_in_generate=True)
    scored = lm.generate(input_ids, return_dict_in_generate=True, output_scores=True)
    best = lm.compute_transition_scores(scored.sequences, scored.scores)
    layers = [state.mean() for state in encoder(input_ids, output_hidden_states=True).hidden_states]
    return out.sequences, best, layers
