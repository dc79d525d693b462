"""What names alone say in model code: weak evidence, never more than ASSUMED.

Only files that work with torch are read this way. A table line is a name, or an ending after ``*``.
"""

from __future__ import annotations

from awp_lint.detector.semantics.values import Certainty, Device, DTypeClass, Kind, Reason, Value, make

_F, _I, _B, _U = DTypeClass.FLOAT, DTypeClass.INT, DTypeClass.BOOL, DTypeClass.UNKNOWN

# Parameters and keys that hold tensors on the model's device, with the class of their elements.
TENSORS: dict[str, DTypeClass] = {
    "hidden_states": _F,
    "hidden_state": _F,
    "encoder_hidden_states": _F,
    "inputs_embeds": _F,
    "input_embeds": _F,
    "prompt_embeds": _F,
    "negative_prompt_embeds": _F,
    "image_embeds": _F,
    "text_embeds": _F,
    "residual": _F,
    "logits": _F,
    "next_token_logits": _F,
    "scores": _F,
    "latents": _F,
    "noise_pred": _F,
    "model_output": _F,
    "sample": _F,
    "query": _F,
    "query_states": _F,
    "key_states": _F,
    "value_states": _F,
    "query_layer": _F,
    "key_layer": _F,
    "value_layer": _F,
    "attn_weights": _F,
    "attention_scores": _F,
    "pixel_values": _F,
    "input_features": _F,
    "temb": _F,
    "cos": _F,
    "sin": _F,
    "rotary_emb": _F,
    "image_rotary_emb": _F,
    "input_ids": _I,
    "decoder_input_ids": _I,
    "src_tokens": _I,  # fairseq and what is built on it
    "prev_output_tokens": _I,
    "position_ids": _I,
    "token_type_ids": _I,
    "cache_position": _I,
    "next_tokens": _I,
    "labels": _I,
    "slot_mapping": _I,
    "block_tables": _I,
    "cu_seqlens": _I,
    "image_grid_thw": _I,
    "video_grid_thw": _I,
    "grid_thw": _I,
    "attention_mask": _U,
    "encoder_attention_mask": _U,
    "decoder_attention_mask": _U,
    "causal_mask": _U,
    "timestep": _U,
    "timesteps": _U,
    "sigmas": _F,
}

# Attributes and keys of model outputs and batches.
OUTPUT_TENSORS: dict[str, DTypeClass] = {
    "logits": _F,
    "last_hidden_state": _F,
    "pooler_output": _F,
    "image_embeds": _F,
    "text_embeds": _F,
    "logits_per_image": _F,
    "logits_per_text": _F,
    "loss": _F,
    "prev_sample": _F,
    "pred_original_sample": _F,
    "sample": _F,
    "input_ids": _I,
    "src_tokens": _I,
    "prev_output_tokens": _I,
    "attention_mask": _I,
    "token_type_ids": _I,
    "position_ids": _I,
    "pixel_values": _F,
    "input_features": _F,
    "start_logits": _F,
    "end_logits": _F,
    "pred_boxes": _F,
    "sequences": _I,
    "timesteps": _U,
}

# Attributes of model outputs that hold one tensor a layer or a step.
OUTPUT_SEQUENCES = frozenset(
    {"hidden_states", "attentions", "encoder_hidden_states", "cross_attentions", "decoder_hidden_states", "scores"}
)

HOST_ENDINGS = ("_cpu", "_np", "_numpy", "_host", "_list")
_SEQUENCE_ENDINGS = ("_list",)


def is_host_name(name: str) -> bool:
    """Whether a name says that its value lives on the host."""
    if name.endswith(HOST_ENDINGS) or name.startswith(("cpu_", "np_", "host_")) or "_cpu_" in name:
        return True
    return name.lstrip("_").startswith("pinned_")


def host_value(name: str, dtype: DTypeClass) -> Value:
    """What a parameter with a host name holds."""
    if name.endswith(("_np", "_numpy")) or name.startswith("np_"):
        return make(Kind.NDARRAY, Device.HOST, dtype, certainty=Certainty.ASSUMED)
    if name.endswith(_SEQUENCE_ENDINGS):
        return make(Kind.SEQUENCE, certainty=Certainty.ASSUMED)
    return make(Kind.TENSOR, Device.HOST, dtype, certainty=Certainty.ASSUMED)


def parameter(name: str, ambient: Device, line: int) -> Value | None:
    """What a parameter without annotation holds by its name alone."""
    if is_host_name(name):
        return host_value(name, DTypeClass.UNKNOWN)
    dtype = TENSORS.get(name)
    if dtype is not None:
        reasons = (Reason(line, f"parameter `{name}`, by its name a tensor where the model is"),)
        return make(Kind.TENSOR, ambient, dtype, certainty=Certainty.ASSUMED, reasons=reasons)
    return named(name, ambient)


# Parameters of `forward` that hold tensors, and their usual endings.
_FORWARD = frozenset(
    {
        *("x", "q", "k", "v", "input", "tensor", "hidden", "feature", "features", "feats", "feat", "src", "tgt", "emb"),
        *("img", "image", "mask", "key", "value", "noise", "embeddings", "mel", "waveform", "wav", "tokens", "memory"),
        *("hidden_input", "inputs", "embeds", "states", "context", "z", "grid", "pos", "positions"),
    }
)
_FORWARD_ENDINGS = ("_mask", "_states", "_embeds", "_embeddings", "_logits", "_ids", "_features", "_hidden", "_weights",
                    "_indices", "_emb", "_feats", "_values")  # fmt: skip
_INTS = ("_ids", "_indices")


def forward_parameter(name: str, ambient: Device, line: int) -> Value | None:
    """What a parameter of a module's ``forward`` without annotation holds by its name."""
    if name not in _FORWARD and not name.endswith(_FORWARD_ENDINGS):
        return None
    dtype = _I if name.endswith(_INTS) or name in ("tokens", "positions") else _U
    reasons = (Reason(line, f"parameter `{name}` of `forward`, by its name a tensor where the model is"),)
    return make(Kind.TENSOR, ambient, dtype, certainty=Certainty.ASSUMED, reasons=reasons)


def named(name: str, ambient: Device) -> Value | None:
    """What a variable of this name holds where nothing else is known: devices, dtypes, configurations."""
    if name == "device" or name.endswith("_device"):
        return make(Kind.DEVICE, ambient, certainty=Certainty.ASSUMED)
    if name == "dtype" or name.endswith("_dtype"):
        return make(Kind.DTYPE, certainty=Certainty.ASSUMED)
    if name == "config" or name.endswith("_config"):
        return make(Kind.CONFIG, certainty=Certainty.ASSUMED)
    if name == "tokenizer" or name.endswith("_tokenizer"):
        return make(Kind.TOKENIZER, certainty=Certainty.ASSUMED)
    return None
