"""Weights loaded in fp32 and cast afterwards."""

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import AutoModelForCausalLM

lm = AutoModelForCausalLM.from_pretrained("lm").half().cuda()  # expect: AWP608


def build(device: str):
    unet = UNet2DConditionModel.from_pretrained("unet", subfolder="unet")  # expect: AWP608
    unet.to(device, torch.bfloat16)
    vae = AutoencoderKL.from_pretrained("vae").to(dtype=torch.float16)  # expect: AWP608
    return unet, vae
