"""Per-row reads of scores in a decode loop: two rows' worth of waiting a token where one read would do."""

import torch


@torch.inference_mode()
def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int):
    input_ids = input_ids.cuda()
    batch_size = input_ids.shape[0]
    confidences = [[] for _ in range(batch_size)]
    for _ in range(max_new_tokens):
        logits = model(input_ids)[:, -1]
        best = logits.softmax(-1).amax(dim=-1)
        best_values = best.tolist()
        for i in range(batch_size):
            confidences[i].append(best_values[i])
        margin = (logits.amax(-1) - logits.mean(-1)).tolist()
        if min(margin) < 0.0:
            break
        next_tokens = logits.argmax(-1, keepdim=True)
        input_ids = torch.cat([input_ids, next_tokens], dim=1)
    return input_ids, confidences
