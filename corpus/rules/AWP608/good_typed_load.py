"""A type is given, the weights are quantised, or no cast follows."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

lm = AutoModelForCausalLM.from_pretrained("lm", dtype=torch.float16).cuda()
old = AutoModelForCausalLM.from_pretrained("lm", torch_dtype="auto").half()
small = AutoModelForCausalLM.from_pretrained("lm", quantization_config=BitsAndBytesConfig(load_in_4bit=True))
plain = AutoModelForCausalLM.from_pretrained("lm").to("cuda")
tokenizer = AutoTokenizer.from_pretrained("lm")


def build(name: str, **options):
    model = AutoModelForCausalLM.from_pretrained(name, **options)
    return model.half()
