"""The best of each block picked on the device, and scores that are kept whole."""

import numpy as np
import torch


def mine_pairs(embeddings: torch.Tensor, chunk_size: int = 1000, top_k: int = 10) -> list:
    pairs = []
    for start in range(0, len(embeddings), chunk_size):
        scores = torch.mm(embeddings[start : start + chunk_size], embeddings.T)
        values, columns = scores.topk(top_k, dim=1)
        values, columns = values.cpu().numpy(), columns.cpu().numpy()
        for row in range(len(values)):
            pairs += [(value, start + row, column) for value, column in zip(values[row], columns[row])]
    return pairs


def similarities(embeddings: torch.Tensor, chunk_size: int = 1000) -> np.ndarray:
    blocks = []
    for start in range(0, len(embeddings), chunk_size):
        scores = torch.mm(embeddings[start : start + chunk_size], embeddings.T).cpu().numpy()
        blocks.append(scores)
    return np.concatenate(blocks)
