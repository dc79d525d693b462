"""A batch of prompts answered one by one."""

import torch
from fastapi import FastAPI
from transformers import AutoModelForCausalLM, AutoTokenizer

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("lm")
model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()


@app.post("/complete")
def complete(prompts: list[str]) -> list[str]:
    answers = []
    for prompt in prompts:  # expect: AWP201
        ids = tokenizer(prompt, return_tensors="pt").input_ids.to("cuda")
        out = model.generate(ids, max_new_tokens=64)
        answers.append(tokenizer.decode(out[0]))
    return answers


@app.post("/score")
def score(sentences: list[str]) -> list[float]:
    with torch.inference_mode():
        encoded = [tokenizer(s, return_tensors="pt").to("cuda") for s in sentences]
        return [float(model(**e).logits.mean()) for e in encoded]
