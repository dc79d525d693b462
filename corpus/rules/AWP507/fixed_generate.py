"""Generation without a cache."""

import torch
from fastapi import FastAPI
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("lm")
model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
greedy = GenerationConfig(max_new_tokens=64, use_cache=True)


@app.post("/complete")
def complete(prompt: str) -> str:
    ids = tokenizer(prompt, return_tensors="pt").input_ids.to("cuda")
    out = model.generate(ids, max_new_tokens=64, use_cache=True)
    return tokenizer.decode(out[0])
