"""Padding to the batch, models of fixed length, one shape on purpose, set-up."""

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, CLIPTextModel, CLIPTokenizer

tokenizer = AutoTokenizer.from_pretrained("classifier")
model = AutoModelForSequenceClassification.from_pretrained("classifier").to("cuda").eval()
compiled = torch.compile(model, mode="reduce-overhead")
EMPTY = tokenizer([""], padding="max_length", max_length=16, return_tensors="pt")


@torch.inference_mode()
def predict(texts: list[str]) -> torch.Tensor:
    batch = tokenizer(texts, padding=True, truncation=True, max_length=512, return_tensors="pt")
    return model(**batch.to("cuda")).logits


@torch.inference_mode()
def predict_in_buckets(texts: list[str]) -> torch.Tensor:
    batch = tokenizer(texts, padding="longest", pad_to_multiple_of=64, return_tensors="pt")
    return model(**batch.to("cuda")).logits


@torch.inference_mode()
def predict_compiled(texts: list[str]) -> torch.Tensor:
    batch = tokenizer(texts, padding="max_length", max_length=128, return_tensors="pt")  # expect[low]: AWP207
    return compiled(**batch.to("cuda")).logits


class Prompts:
    def __init__(self, name: str):
        self.tokenizer = CLIPTokenizer.from_pretrained(name)
        self.text_encoder = CLIPTextModel.from_pretrained(name).to("cuda")

    @torch.inference_mode()
    def encode_prompt(self, prompts: list[str]) -> torch.Tensor:
        longest = self.tokenizer.model_max_length
        options = {"max_length": longest, "return_tensors": "pt"}
        ids = self.tokenizer(prompts, padding="max_length", **options)
        return self.text_encoder(ids.input_ids.to("cuda"))[0]
