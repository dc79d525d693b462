"""Other spellings: `.to("cpu")`, keyword device, `int(...)` around a reduction."""

import torch


class Denoiser:
    def __init__(self, unet: torch.nn.Module):
        self.unet = unet

    @torch.inference_mode()
    def generate(self, x: torch.Tensor, num_steps: int) -> list:
        x = x.to("cuda")
        previews = []
        for step in range(num_steps):
            x = self.unet(x)
            previews.append(x[:, :3].to("cpu"))  # expect: AWP101
            energy = x.square().mean().to(device="cpu")  # expect: AWP101
            level = int(x.abs().max())  # expect: AWP101
            if energy > 10 or level > 255:
                x = x.clamp(-1, 1)
        return previews
