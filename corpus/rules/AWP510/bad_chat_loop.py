"""Chat loops that prefill the whole history."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("lm")
model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()


@torch.inference_mode()
def chat() -> None:
    messages = [{"role": "system", "content": "be brief"}]
    while True:
        messages.append({"role": "user", "content": input("> ")})
        inputs = tokenizer.apply_chat_template(messages, return_tensors="pt", return_dict=True).to("cuda")
        out = model.generate(**inputs, max_new_tokens=256)  # expect: AWP510
        answer = tokenizer.decode(out[0, inputs["input_ids"].shape[1] :])
        messages.append({"role": "assistant", "content": answer})
        print(answer)


@torch.inference_mode()
def interview(questions: list[str]) -> str:
    text = "an interview\n"
    for question in questions:
        text += f"Q: {question}\nA:"
        ids = tokenizer(text, return_tensors="pt").input_ids.to("cuda")
        out = model.generate(ids, max_new_tokens=64)  # expect: AWP510
        answer = tokenizer.decode(out[0, ids.shape[1] :])
        text += answer
    return text
