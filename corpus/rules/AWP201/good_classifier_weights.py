"""The prompts of all classes encoded in batches, and names that are only formatted."""

import torch
import torch.nn.functional as F


def zero_shot_weights(model, tokenizer, class_names, templates, device):
    texts = []
    for class_name in class_names:
        texts += [template(class_name) for template in templates]
    with torch.no_grad():
        parts = []
        for start in range(0, len(texts), 256):
            tokens = tokenizer(texts[start : start + 256]).to(device)
            parts.append(F.normalize(model.encode_text(tokens), dim=-1))
        rows = torch.cat(parts).reshape(len(class_names), len(templates), -1).mean(dim=1)
        return F.normalize(rows, dim=-1).T
