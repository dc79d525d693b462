"""An argument chooses among the layers: the model makes its result of their states."""

import torch
from transformers import AutoModel

reranker = AutoModel.from_pretrained("reranker").to("cuda").eval()


@torch.inference_mode()
def rank(batches: list) -> list:
    found = []
    for batch in batches:
        outputs = reranker(batch.to("cuda"), output_hidden_states=True, cutoff_layers=[8, 16])  # expect[low]: AWP312
        found.append(outputs.logits)
    return found


@torch.inference_mode()
def rank_plainly(batches: list) -> list:
    found = []
    for batch in batches:
        outputs = reranker(batch.to("cuda"), output_hidden_states=True, use_cache=False)  # expect: AWP312
        found.append(outputs.logits)
    return found
