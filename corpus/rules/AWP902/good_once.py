"""Once a request, at start-up, tensors instead of objects."""

import torch
import torch.distributed as dist


def init(rank: int, world: int) -> None:
    dist.init_process_group("nccl", rank=rank, world_size=world)
    dist.barrier()


@torch.inference_mode()
def generate(model: torch.nn.Module, prompt: list, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    dist.broadcast_object_list(prompt, src=0)
    tokens = tokens.to("cuda")
    for _ in range(max_new_tokens):
        tokens = model(tokens).argmax(-1)
        dist.broadcast(tokens, src=0)
    dist.barrier()
    return tokens


def save(model: torch.nn.Module, steps: int) -> None:
    for step in range(steps):
        torch.save(model.state_dict(), f"{step}.pt")
        dist.barrier()
