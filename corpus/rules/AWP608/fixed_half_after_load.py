"""Weights loaded in fp32 and cast afterwards."""

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import AutoModelForCausalLM

lm = AutoModelForCausalLM.from_pretrained("lm", dtype=torch.float16).cuda()


def build(device: str):
    unet = UNet2DConditionModel.from_pretrained("unet", subfolder="unet")
    unet.to(device, torch.bfloat16)
    vae = AutoencoderKL.from_pretrained("vae", torch_dtype=torch.float16)
    return unet, vae
