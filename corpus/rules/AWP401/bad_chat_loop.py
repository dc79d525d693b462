"""A chat program with a hand-written decode loop."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


@torch.inference_mode()
def complete(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
    cache = None
    step = input_ids
    for _ in range(max_new_tokens):  # expect: AWP401
        out = model(step, past_key_values=cache)
        cache = out.past_key_values
        step = out.logits[:, -1].argmax(-1, keepdim=True)
        input_ids = torch.cat([input_ids, step], dim=1)
    return input_ids


if __name__ == "__main__":
    tokenizer = AutoTokenizer.from_pretrained("lm")
    lm = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
    while True:
        prompt = tokenizer(input(), return_tensors="pt").input_ids.to("cuda")
        print(tokenizer.decode(complete(lm, prompt, 64)[0]))
