"""Stop checks of a decode loop on the device, in several spellings."""

import torch


@torch.no_grad()
def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int, eos: int) -> torch.Tensor:
    input_ids = input_ids.to("cuda")
    finished = torch.zeros(input_ids.shape[0], dtype=torch.bool, device="cuda")
    for _ in range(max_new_tokens):
        logits = model(input_ids)[:, -1]
        probs = logits.softmax(-1)
        greedy = bool((probs.amax(-1) > 0.9).all())
        tokens = logits.argmax(-1) if greedy else torch.multinomial(probs, 1).squeeze(-1)
        finished = finished | (tokens == eos)
        input_ids = torch.cat([input_ids, tokens[:, None]], dim=1)
        if finished.all():
            break
    return input_ids


@torch.no_grad()
def infer(model: torch.nn.Module, x: torch.Tensor, timesteps: list) -> torch.Tensor:
    x = x.cuda()
    for t in timesteps:
        noise = model(x, t)
        while noise.abs().max() > 10.0:
            noise = noise * 0.5
        x = torch.where(noise.mean() > 0, x - noise, x + noise)
    return x
