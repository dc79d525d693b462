"""Passes that need what the pass before wrote into the model's own input."""

import collections

import torch


class Codec:
    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model

    @torch.inference_mode()
    def generate(self, codes: torch.Tensor, batch_size: int) -> torch.Tensor:
        for sample_idx in range(batch_size):
            logits = self.model(codes, sample_idx)
            codes[:, :, sample_idx] = logits.argmax(-1)
        return codes


class Conversation:
    """The labels of a question are made of the answers to the one before."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model

    @torch.inference_mode()
    def predict(self, input_ids: torch.Tensor, labels: torch.Tensor, batch_size: int) -> list:
        answers, found = None, []
        for index in range(batch_size):
            if answers is not None:
                for position in range(labels.shape[1]):
                    labels[index, position] = int(answers[position])
            logits = self.model(input_ids[index : index + 1], labels[index : index + 1])
            kept = collections.defaultdict(list)
            for position, value in enumerate(logits[0].tolist()):
                kept[position].append(value)
            answers = {position: max(kept[position]) > 0 for position in kept}
            found.append(logits)
        return found
