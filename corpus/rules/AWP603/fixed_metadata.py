"""Batch metadata built on the host at every step and copied from pageable memory."""

import torch


class Runner:
    def __init__(self, model: torch.nn.Module):
        self.model = model
        self.positions = torch.zeros(512, dtype=torch.long, device="cuda")

    @torch.inference_mode()
    def generate(self, input_ids: torch.Tensor, lengths: list, max_new_tokens: int) -> torch.Tensor:
        input_ids = input_ids.to("cuda")
        for step in range(max_new_tokens):
            order = torch.tensor([length + step for length in lengths])
            sorted_by = order.to(self.positions.device, non_blocking=True)  # expect: AWP603
            seq_lens = torch.tensor(lengths, dtype=torch.int32) + step
            starts = torch.cumsum(seq_lens, dim=0)
            seq_lens_gpu = (seq_lens.pin_memory() if seq_lens.is_cpu and torch.cuda.is_available() else seq_lens).to("cuda", non_blocking=True)  # expect: AWP603
            starts_gpu = starts.to("cuda", non_blocking=True)
            self.positions[: len(lengths)].copy_(seq_lens)  # expect: AWP603
            logits = self.model(input_ids, seq_lens_gpu, starts_gpu, self.positions)[:, -1]
            input_ids = torch.cat([input_ids, logits.argmax(-1, keepdim=True)], dim=1)
        return input_ids
