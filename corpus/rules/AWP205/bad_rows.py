"""One token a request of the batch, with the request's own temperature."""

import torch


class Engine:
    def __init__(self, model: torch.nn.Module):
        self.model = model

    def sample(self, logits: torch.Tensor, batch: list) -> torch.Tensor:
        chosen = []
        for row, request in enumerate(batch):  # expect: AWP205
            probs = torch.softmax(logits[row].float() / request.temperature, dim=-1)
            chosen.append(torch.multinomial(probs, 1))
        return torch.cat(chosen)

    @torch.inference_mode()
    def generate(self, tokens: torch.Tensor, batch: list, max_new_tokens: int) -> torch.Tensor:
        tokens = tokens.cuda()
        for _ in range(max_new_tokens):
            logits = self.model(tokens)[:, -1]
            tokens = torch.cat([tokens, self.sample(logits, batch)[:, None]], dim=1)
        return tokens
