"""Duck types: objects whose class no code tells, but whose name everybody understands.

One line a fact: an object called so, asked for such a method, is an instance of a class named so. The edges that they
make are assumptions.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class DuckType(NamedTuple):
    """Patterns match whole names; ``method`` None: any. ``same_file``: only classes of the calling file count."""

    receiver: re.Pattern[str]
    method: re.Pattern[str] | None
    cls: re.Pattern[str]
    same_file: bool = False


def _duck(receiver: str, method: str | None, cls: str, same_file: bool = False) -> DuckType:
    compiled = None if method is None else re.compile(method)
    return DuckType(re.compile(receiver), compiled, re.compile(cls), same_file)


DUCK_TYPES: tuple[DuckType, ...] = (
    _duck(
        r"(?!inverse)(\w+_)?scheduler",
        "step|scale_model_input|set_timesteps|add_noise|schedule|set_begin_index",
        r"(?!\w*Inverse)\w*Scheduler",
    ),
    _duck(r"inverse_(\w+_)?scheduler", "step|scale_model_input|set_timesteps", r"\w*Inverse\w*Scheduler"),
    _duck(r"(attn_)?processor", "__call__", r"\w*Attn\w*Processor\w*"),
    _duck(r"logits_(processor|warper)|logits_processor_list", "__call__", "LogitsProcessorList"),
    _duck(r"(logits_)?(processor|warper)", "__call__", r"\w+Logits(Processor|Warper)"),
    _duck(r"stopping_criteria", "__call__", "StoppingCriteriaList"),
    _duck(r"criteri(a|on)", "__call__", r"\w+Criteria"),
    _duck(r"streamer", "put|end", r"\w*Streamer"),
    _duck(
        r"(\w+_)?rotary(_\w+)?|rope(_\w+)?|pos_embed|(\w+_)?position_embeddings?",
        "__call__",
        r"\w*(Rotary|Rope|Pos)\w*",
        True,
    ),
    _duck(r"(past_key_values?|(kv_)?cache|layer_past)", "update|get_seq_length|get_mask_sizes", r"\w*Cache"),
    _duck(r"(attn_)?impl", "forward|do_\\w+", r"\w*Attention\w*Impl|\w*Impl"),
    _duck(r"quant_method|linear_method", "apply|embedding", r"\w*(Linear|MoE|Embedding|Quant)\w*Method"),
    _duck(r"(\w+_)?sampler", "__call__|forward|sample", r"\w*Sampler"),
    _duck(r"(\w*_)?model_runner", None, r"\w*ModelRunner\w*"),
    _duck(r"(driver_)?worker", None, r"\w*Worker\w*"),
    _duck(r"(\w+_)?(metadata_)?builder", "build|build_\\w+", r"\w*MetadataBuilder"),
    _duck(r"drafter|proposer|speculator", "propose|__call__|run_model", r"\w*(Proposer|Speculator)"),
    _duck(r"(\w+_)?(engine|engine_core)", "step|generate|add_request|execute_model|encode", r"\w*Engine\w*"),
    _duck(r"(model_)?executor", "execute_model|collective_rpc|sample_tokens", r"\w*Executor\w*"),
    _duck(r"guider", "__call__|forward|prepare_inputs", r"\w*Guid(er|ance)\w*"),
)


@lru_cache(maxsize=65536)
def ducks(receiver: str, method: str) -> tuple[int, ...]:
    """Numbers of the facts that hold for a method of an object called so."""
    return tuple(
        number
        for number, duck in enumerate(DUCK_TYPES)
        if duck.receiver.fullmatch(receiver) and (duck.method is None or duck.method.fullmatch(method))
    )


#: Method names too common to tell a class, even where only one class of the project defines them.
COMMON_METHODS = frozenset(
    (
        *(
            "step",
            "run",
            "call",
            "forward",
            "encode",
            "decode",
            "predict",
            "process",
            "load",
            "save",
            "update",
            "build",
        ),
        *("reset", "close", "start", "stop", "send", "write", "read", "open", "apply", "transform", "fit", "next"),
        *("setup", "execute", "add", "remove", "clear", "put", "pop", "push", "generate", "train", "test", "eval"),
        *("init", "init_weights", "from_pretrained", "save_pretrained", "push_to_hub", "tokenize", "preprocess"),
        *(
            "postprocess",
            "infer",
            "inference",
            "sample",
            "score",
            "embed",
            "handle",
            "submit",
            "result",
            "wait",
            "join",
        ),
        *("flush", "shutdown", "main", "register", "create", "make", "validate", "check", "parse", "dump", "dumps"),
        *("loads", "wrap", "name", "device", "dtype", "config", "parameters", "modules", "children", "state_dict"),
        *("load_state_dict", "set", "connect", "execute_model", "fill", "resize", "crop", "pad", "normalize", "plot"),
        *(
            "show",
            "log",
            "prepare",
            "collate",
            "download",
            "upload",
            "delete",
            "list",
            "filter",
            "map",
            "reduce",
            "size",
        ),
    )
)
