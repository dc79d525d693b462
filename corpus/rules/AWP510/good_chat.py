"""One cache a conversation, one turn, engines that cache prefixes, histories that are cut."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from vllm import LLM

tokenizer = AutoTokenizer.from_pretrained("lm")
model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
engine = LLM("lm")


@torch.inference_mode()
def chat() -> None:
    messages, cache = [], DynamicCache()
    while True:
        messages.append({"role": "user", "content": input("> ")})
        ids = tokenizer.apply_chat_template(messages, return_tensors="pt").to("cuda")
        out = model.generate(ids, max_new_tokens=256, past_key_values=cache)
        messages.append({"role": "assistant", "content": tokenizer.decode(out[0, ids.shape[1] :])})


@torch.inference_mode()
def answers(questions: list[str]) -> list[str]:
    found = []
    for question in questions:
        ids = tokenizer(question, return_tensors="pt").input_ids.to("cuda")
        out = model.generate(ids, max_new_tokens=64)
        found.append(tokenizer.decode(out[0, ids.shape[1] :]))
    return found


def with_engine() -> None:
    messages = []
    while True:
        messages.append({"role": "user", "content": input("> ")})
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        answer = engine.generate(text)[0].outputs[0].text
        messages.append({"role": "assistant", "content": answer})


@torch.inference_mode()
def short_memory() -> None:
    messages = []
    while True:
        messages.append({"role": "user", "content": input("> ")})
        messages = messages[-4:]
        ids = tokenizer.apply_chat_template(messages, return_tensors="pt").to("cuda")
        out = model.generate(ids, max_new_tokens=256)
        messages.append({"role": "assistant", "content": tokenizer.decode(out[0, ids.shape[1] :])})


@torch.inference_mode()
def only_questions(questions: list[str]) -> list[str]:
    log, found = [], []
    for question in questions:
        log.append(question)
        ids = tokenizer(question, return_tensors="pt").input_ids.to("cuda")
        found.append(tokenizer.decode(model.generate(ids, max_new_tokens=8)[0]))
    return found
