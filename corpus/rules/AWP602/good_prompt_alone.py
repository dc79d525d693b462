"""A mask that the prompt alone needs: one position has nothing to hide."""

import torch
from transformers import GenerationMixin, PreTrainedModel


def causal_mask(input_shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    length = input_shape[-1]
    mask = torch.full((length, length), torch.finfo(dtype).min)
    return mask.triu(1)


class Causal(PreTrainedModel, GenerationMixin):
    def forward(self, input_ids: torch.Tensor, inputs_embeds: torch.Tensor) -> torch.Tensor:
        input_shape = input_ids.size()
        mask = None
        if input_shape[-1] > 1:
            mask = causal_mask(input_shape, inputs_embeds.dtype).to(inputs_embeds.device)
        return inputs_embeds if mask is None else inputs_embeds + mask.sum()
