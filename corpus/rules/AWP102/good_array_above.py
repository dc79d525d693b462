"""The caller has made an array of it, whatever the parameter is declared to be."""

import torch


class Searcher:
    def __init__(self, blank: int):
        self.blank = blank

    def search(self, log_probs: torch.Tensor) -> list:
        found = []
        for number, scores in enumerate(log_probs):
            if scores[self.blank] > -0.5:  # expect[low]: AWP102
                continue
            found.append(number)
        return found

    def decode(self, model: torch.nn.Module, features: torch.Tensor) -> list:
        log_probs = model(features.to("cuda"))
        log_probs = log_probs.cpu().numpy()
        return [self.search(scores) for scores in log_probs]

    def transcribe(self, model: torch.nn.Module, recordings: list[torch.Tensor]) -> list:
        return [self.decode(model, features) for features in recordings]
