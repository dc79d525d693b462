"""Greedy picking on the host, through a helper variable and inline."""

import torch


class Generator:
    def __init__(self, model: torch.nn.Module):
        self.model = model

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, max_new_tokens: int):
        ids = ids.to("cuda")
        for _ in range(max_new_tokens):
            logits = self.model(ids)[:, -1, :]
            picked = int(logits.cpu().numpy().argmax(-1)[0])  # expect: AWP111
            ids = torch.cat([ids, torch.tensor([[picked]], device="cuda")], dim=1)
            last_scores = logits.tolist()  # expect: AWP111
            order = sorted(last_scores[0])
            if order[-1] - order[-2] > 20:
                break
        return ids
