"""The ids of each item are read where its text is made of them: the text is what is asked for."""

import torch
from torch import nn


class Tokenizer:
    def decode(self, ids: torch.Tensor) -> str:
        return "".join(map(chr, ids.tolist()))


class Recognizer(nn.Module):
    def __init__(self, encoder: nn.Module, tokenizer: Tokenizer, blank: int):
        super().__init__()
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.blank = blank

    @torch.inference_mode()
    def inference(self, features: torch.Tensor) -> list:
        scores = self.encoder(features.to("cuda"))
        texts = []
        for i in range(scores.shape[0]):
            path = torch.unique_consecutive(scores[i].argmax(-1), dim=-1)
            ids = path.tolist()  # expect[low]: AWP101
            kept = [number for number in ids if number != self.blank]
            texts.append(self.tokenizer.decode(kept))
        return texts
