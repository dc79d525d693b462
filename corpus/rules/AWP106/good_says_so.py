"""A function that is there to wait: another process writes into the buffers by remote memory access."""

import torch


class Receiver:
    def __init__(self, model: torch.nn.Module, link):
        self.model = model
        self.link = link

    def _sync_device_after_receive(self) -> None:
        torch.cuda.synchronize()  # expect[low]: AWP106

    @torch.inference_mode()
    def generate(self, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            self.link.receive()
            self._sync_device_after_receive()
            ids = torch.cat([ids, self.model(ids)[:, -1:].argmax(-1)], dim=1)
        return ids
