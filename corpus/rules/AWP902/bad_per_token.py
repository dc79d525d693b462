"""Objects and barriers between ranks for every token."""

import torch
import torch.distributed as dist


@torch.inference_mode()
def generate(model: torch.nn.Module, tokens: torch.Tensor, max_new_tokens: int, world: int) -> torch.Tensor:
    tokens = tokens.to("cuda")
    for step in range(max_new_tokens):
        tokens = model(tokens).argmax(-1)
        flags = [step]
        dist.broadcast_object_list(flags, src=0)  # expect: AWP902
        gathered = [None] * world
        dist.all_gather_object(gathered, {"step": step})  # expect: AWP902
        dist.barrier()  # expect: AWP902
        if flags[0] > len(gathered) * 1000:
            break
    return tokens
