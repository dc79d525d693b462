"""A length that the model's own configuration gives: its layers are made for it."""

import torch
from transformers import AutoModel, AutoTokenizer


class Segmenter:
    def __init__(self, name: str):
        self.model = AutoModel.from_pretrained(name).to("cuda").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(name)

    @torch.inference_mode()
    def predict(self, task: str) -> torch.Tensor:
        inputs = self.tokenizer(  # expect[low]: AWP207
            [task],
            padding="max_length",
            max_length=self.model.config.task_seq_len,
            return_tensors="pt",
        )
        return self.model(**inputs.to("cuda")).last_hidden_state
