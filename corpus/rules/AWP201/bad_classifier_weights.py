"""A library function that encodes the prompts of one class at a time."""

import torch
import torch.nn.functional as F


def zero_shot_weights(model, tokenizer, class_names, templates, device):
    with torch.no_grad():
        weights = []
        for class_name in class_names:  # expect: AWP201
            texts = [template(class_name) for template in templates]
            tokens = tokenizer(texts).to(device)
            embedding = F.normalize(model.encode_text(tokens), dim=-1).mean(dim=0)
            weights.append(embedding / embedding.norm())
        return torch.stack(weights, dim=1)
