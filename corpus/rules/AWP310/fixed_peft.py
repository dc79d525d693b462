"""One adapter on a language model, served unmerged."""

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("base")
base = AutoModelForCausalLM.from_pretrained("base", dtype=torch.bfloat16, device_map="cuda")
model = PeftModel.from_pretrained(base, "adapter").merge_and_unload()
model.eval()


def complete(prompt: str) -> str:
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    return tokenizer.decode(model.generate(**inputs, max_new_tokens=64)[0])
