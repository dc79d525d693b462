"""Entry points: functions whose frequency frameworks and conventions fix, before any call is followed.

Tables of what frameworks call, and how often: one line a fact. *Proven* entries are contracts of a framework (a route,
a logits processor); *assumed* ones are conventions of model libraries and count only for what no call graph reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from awp_lint.detector.semantics.facts import GUARD_SKIP, FunctionFact
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import Level, LoopKind, Region

_REQUEST = (Level.REQUEST,)
_STEP = (Level.REQUEST, Level.STEP)
_TOKEN = (Level.REQUEST, Level.TOKEN)
_LAYER = (Level.REQUEST, Level.LAYER)
_STEP_LAYER = (Level.REQUEST, Level.STEP, Level.LAYER)
_TOKEN_LAYER = (Level.REQUEST, Level.TOKEN, Level.LAYER)


class Entry(NamedTuple):
    """How often a function is entered. ``cold``: loops in it and calls from it do not make a path (set-up code);
    ``origin``: what calls it, for the chain: (library, function)."""

    path: tuple[Level, ...]
    certainty: Certainty
    cold: bool = False
    origin: tuple[str, str] | None = None


SCRIPT = Entry((), Certainty.PROVEN)
COLD = Entry((), Certainty.ASSUMED, cold=True)


class _Callback(NamedTuple):
    base: re.Pattern[str]  # last name of the class or of one of its bases
    method: re.Pattern[str]
    path: tuple[Level, ...]
    origin: tuple[str, str]


def _callback(base: str, method: str, path: tuple[Level, ...], library: str, function: str) -> _Callback:
    return _Callback(re.compile(base), re.compile(method), path, (library, function))


_CACHES_OF = (
    "(Dynamic|Static|SlidingWindow|Hybrid|Quantized|EncoderDecoder|Offloaded|OffloadedStatic)?Cache"  # of transformers
)

#: Methods that a framework calls on classes derived from its own.
_CALLBACKS: tuple[_Callback, ...] = (
    _callback("LogitsProcessor|LogitsWarper", "__call__", _TOKEN, "transformers", "GenerationMixin.generate"),
    _callback("StoppingCriteria", "__call__", _TOKEN, "transformers", "GenerationMixin.generate"),
    _callback("(Base|Text)Streamer", "put|on_finalized_text", _TOKEN, "transformers", "GenerationMixin.generate"),
    _callback("GenerationMixin", "forward", _TOKEN, "transformers", "GenerationMixin.generate"),
    _callback("GenerationMixin", "prepare_inputs_for_generation", _TOKEN, "transformers", "GenerationMixin.generate"),
    _callback(f"{_CACHES_OF}|CacheLayerMixin", "update", _TOKEN_LAYER, "transformers", "attention forward"),
    _callback("SchedulerMixin", "step|scale_model_input", _STEP, "diffusers", "pipeline"),
    _callback("SchedulerMixin", "set_timesteps|add_noise", _REQUEST, "diffusers", "pipeline"),
    _callback("Thread|Process", "run", (), "threading", "Thread.start"),
    _callback("(Base|Simple)HTTPRequestHandler", r"do_[A-Z]+", _REQUEST, "http.server", "serve_forever"),
    _callback("BaseRequestHandler|StreamRequestHandler", "handle", _REQUEST, "socketserver", "serve_forever"),
    _callback("BaseHTTPMiddleware", "dispatch", _REQUEST, "starlette", "BaseHTTPMiddleware"),
    _callback("TritonPythonModel", "execute", _REQUEST, "tritonserver", "python backend"),
    _callback("BasePredictor", "predict", _REQUEST, "cog", "predict"),
    _callback("BaseHandler", "preprocess|inference|postprocess|handle", _REQUEST, "ts", "torch_handler"),
    _callback(r"\w+Servicer", r"[A-Za-z]\w*", _REQUEST, "grpc", "server"),
    _callback("LitAPI", "predict|decode_request|encode_response|batch|unbatch", _REQUEST, "litserve", "LitServer"),
)  # fmt: skip

#: Last names of decorators of functions that run once a request.
_ROUTES = frozenset(
    (
        *("get", "post", "put", "patch", "delete", "route", "websocket", "websocket_route", "api_route"),
        *("task", "api", "endpoint", "web_endpoint", "fastapi_endpoint", "GPU", "exception_handler", "middleware"),
    )
)
_COMMANDS = frozenset(("command", "group", "callback", "local_entrypoint"))
_STARTUP = frozenset(("on_event", "on_startup", "enter", "lifespan"))
#: Decorators that keep what a call gave, under a project's own names too: ``lru_cache_unless_export``.
_CACHES = re.compile(
    r"(?!(no|disable|clear|reset|use|with|kv|register)_)(\w+_)?(lru_cache|cached?|cached_property|memoi[sz]ed?|once)"
    r"(_(by|if|unless|when)_\w+)?"
)

#: Functions that are set-up whatever calls them by convention.
_COLD_NAME = re.compile(
    r"_?init_weights|_?initialize_?\w*|load_weights|load_state_dict|from_pretrained|save_pretrained|reset_parameters"
    r"|process_weights_after_loading|create_weights|init_device|load_model|determine_available_memory|profile_run"
    r"|capture_model|compile_or_warm_up_model|\w*warm_?up\w*|post_init|tie_weights|lifespan|startup|shutdown"
    r"|convert_\w+|_?load_\w+|register_\w+|_compute_\w+_parameters|__init_subclass__|__repr__|__str__|extra_repr|__del__|from_config"
)

#: Methods of a module library that run at least once a request; only where nothing in the project calls them.
_MODULE_METHODS = re.compile(r"forward|__call__")
_LAYER_CLASS = re.compile(
    r"\w*(Layer|Block|Attention|Attn|MLP|Mlp|FeedForward|FFN|Norm(?!ali[sz])|Rotary|Rope|RoPE|Expert|MoE|Moe|Router|Mixer|Resnet"
    r"|ResBlock|Activation|Act(?![a-z])|Linear|Conv|Downsample|Upsample|Processor)\w*"
)
#: Whole models and their parts that run once, whatever their family is called: ``Qwen3VLMoeVisionModel``; what is
#: done to a model's input and output, ``ConvSoftArgmax2d``.
_WHOLE_CLASS = re.compile(
    r"\w*(Model|Transformer|Encoder|Decoder|Embeddings?|Network|Net|Backbone|Tower|Head|For[A-Z]\w*"
    r"|(Pre|Post|Image)[Pp]rocess(or|ing)|Generator|Filter(ing)?|(Arg[Mm]ax|Interp)(\dd)?|Input(Norm|Process)\w*)"
)
_CAUSAL_CLASS = re.compile(r"\w*(ForCausalLM|ForConditionalGeneration|LMHeadModel|CausalLM)\w*")
_DENOISER_CLASS = re.compile(r"\w*(UNet|Unet|Transformer[23]D|DiT|ControlNet)\w*")
#: Attention of serving engines, which its layer holds as a plain object.
_ATTENTION_CLASS = re.compile(r"\w*(Attention|Attn)\w*(Impl|Backend)\w*")
_ATTENTION_METHODS = re.compile(r"forward(_(extend|decode|prefill|mha|mqa))?")
_PROCESSOR_CLASS = re.compile(r"\w*Attn\w*Processor\w*")

#: Public functions and methods that serve a request by their name.
_REQUEST_NAME = re.compile(
    r"generate(_\w+)?|chat|stream_chat|transcribe|translate|predict(_\w+)?|infer(ence)?|encode(_\w+)?|embed(_\w+)?|synthesi[sz]e"
    r"|tts|denoise|inpaint|img2img|txt2img|text2img|rerank|compute_score|detect|segment|handler|lambda_handler"
    r"|greedy_search|beam_search|sample"
)  # fmt: skip
#: Parameters of library functions that work on a user's data: tensors, or a model with what it is asked about.
_TENSOR_NAME = re.compile(
    r"(\w+_)?(embeddings?|embeds|logits|hidden_states|scores|log_?probs|probs|features|latents|tensors?|waveforms?)"
)
_MODEL_NAME = re.compile(r"(\w+_)?(model|encoder|decoder|unet|vae|pipe(line)?)")
_ASKED_NAME = re.compile(
    r"(\w+_)?(sentences?|texts?|prompts?|queries|query|corpus|documents?|passages|questions|images?|audios?|class_?names"
    r"|input_ids|inputs)"
)
#: Those that come from outside, before anything is made of them.
_DATA_NAME = re.compile(r"(\w+_)?(sentences?|texts?|prompts?|queries|documents?|passages|questions|images?|audios?)")
#: What is done to a model, or to judge it, and not with it; and what goes through a video, a whole model a frame.
_CHANGES = re.compile(
    r"(^|_)(init\w*|reset|load|save|copy|update|merge|fuse|fold|convert|export|trace|quanti[sz]e\w*|calibrat\w*|prune\w*|tune"
    r"|optimi[sz]e\w*|fit|train\w*|ema|eval|evaluate\w*|valid\w*|test|bench\w*|profile|measure|compare|check|verify|debug"
    r"|dump|log|plot|draw\w*|visuali[sz]e\w*|collect|search|prepare|setup|build|register|params?|parameters|weights?|grads?"
    r"|gradients?|state|dict|hooks?|buffers?|norms?|main|epoch|metrics?|loss(es)?|videos?"
    r"|frames?|track\w*)(?=_|$)"
)
_TOKEN_NAME = re.compile(
    r"decode_(one_|next_)?(step|token)|generate_(step|(one_|next_)?token)|(sample_)?next_token|sample_(next_)?tokens?"
)
_STEP_NAME = re.compile(r"denoise_step|sampl(e|ing)_step|execute_model|model_forward|engine_step|run_engine_step")
_STEP_CLASS = re.compile(r"\w*(Engine|EngineCore|ModelRunner|Worker)\w*")
_PIPELINE_CLASS = re.compile(
    r"\w*(Pipeline|Predictor|Inferencer|Generator|Detector|Transcriber|Embedder|Encoder|Reranker)"
)


#: Names that leave no doubt: set-up even where the code of a step calls it.
_SETUP_NAME = re.compile(
    r"_?init_weights|_?init_executor|_?init_workers?|initialize_(weights|model|cache|from_config|kv_cache)|load_weights"
    r"|load_(lora_)?model|process_weights_after_loading|finalize_\w*weights|create_weights|reset_parameters|init_device"
    r"|determine_available_memory|profile_run|_?dummy_run|capture_model|compile_or_warm_up_model|\w*warm_?up\w*"
    r"|\w*_first_(launch|run|call)|tie_weights|_compute_\w+_parameters|unmerge(_adapters?)?|merge_and_unload|(un)?fuse_lora"
)


def is_setup(function: FunctionFact) -> bool:
    """Whether its name leaves no doubt that it runs at set-up, or the first time only."""
    return _SETUP_NAME.fullmatch(function.qualname.rpartition(".")[2]) is not None


def is_cold(function: FunctionFact) -> bool:
    """Set-up by its name or its decorators, whoever calls it by convention."""
    name = function.qualname.rpartition(".")[2]
    return not _STARTUP.isdisjoint(function.routes) or _COLD_NAME.fullmatch(name) is not None


#: What model classes ask about a prompt's images, sounds and positions, and the noise put on a picture that is changed:
#: in the first step of a request.
_FIRST_NAME = re.compile(
    r"get_(image|video|audio|speech)_(features|embeds|embeddings|tokens)|get_placeholder_mask|get_rope_index|add_noise"
)


def is_first(function: FunctionFact) -> bool:
    """Whether its name says that the first step of a request alone calls it."""
    return _FIRST_NAME.fullmatch(function.qualname.rpartition(".")[2]) is not None


def is_cached(function: FunctionFact) -> bool:
    """Whether its body runs once for the same arguments."""
    return any(_CACHES.fullmatch(name) is not None for name in function.routes)


@lru_cache(maxsize=65536)
def _callbacks(method: str) -> tuple[_Callback, ...]:
    """The callbacks that a method of this name may be."""
    return tuple(fact for fact in _CALLBACKS if fact.method.fullmatch(method))


def contract(function: FunctionFact, class_names: Iterable[str], class_decorators: Iterable[str]) -> Entry | None:
    """The frequency that a framework's contract fixes. ``class_names`` are dotted names of the class and its bases."""
    if function.kind == "module":
        return SCRIPT
    if function.kind == "lambda":
        return None
    name = function.qualname.rpartition(".")[2]
    if not _ROUTES.isdisjoint(function.routes):
        return Entry(_REQUEST, Certainty.PROVEN)
    if not _COMMANDS.isdisjoint(function.routes):
        return SCRIPT
    if not _STARTUP.isdisjoint(function.routes):
        return Entry((), Certainty.PROVEN, cold=True)
    if function.cls < 0:
        return SCRIPT if name in ("main", "cli") and not function.parameters else None
    for fact in _callbacks(name):
        if any(fact.base.fullmatch(full.rpartition(".")[2]) for full in class_names):
            return Entry(fact.path, Certainty.PROVEN, origin=fact.origin)
    if "deployment" in class_decorators and not name.startswith("_"):
        return Entry(_REQUEST, Certainty.PROVEN, origin=("ray", "serve"))
    if "deployment" in class_decorators and name == "__call__":
        return Entry(_REQUEST, Certainty.PROVEN, origin=("ray", "serve"))
    return None


def convention(function: FunctionFact, class_names: Iterable[str], is_module: bool, uses_torch: bool) -> Entry | None:
    """What convention says of a function that no call has reached. ``uses_torch``: its file imports a model library."""
    name = function.qualname.rpartition(".")[2]
    if function.kind in ("lambda", "module"):
        return None
    if name in ("__init__", "__post_init__", "__new__") or is_cold(function):
        return COLD
    if function.cls >= 0:
        own = function.qualname.rpartition(".")[0].rpartition(".")[2]
        shorts = [full.rpartition(".")[2] for full in class_names]
        if is_module and _MODULE_METHODS.fullmatch(name):
            return Entry(_module_path(own, shorts), Certainty.ASSUMED)
        if name == "__call__" and _PROCESSOR_CLASS.fullmatch(own):
            return Entry(_STEP_LAYER, Certainty.ASSUMED)
        if _ATTENTION_METHODS.fullmatch(name) and uses_torch and _ATTENTION_CLASS.fullmatch(own):
            return Entry(_STEP_LAYER, Certainty.ASSUMED)
        if name == "__call__" and uses_torch and any(_PIPELINE_CLASS.fullmatch(short) for short in shorts):
            return Entry(_REQUEST, Certainty.ASSUMED)
        if _STEP_CLASS.fullmatch(own) and name in ("step", "execute_model", "step_async", "execute_model_async"):
            return Entry(_STEP, Certainty.ASSUMED)
    if not uses_torch or function.outer > 0:
        return None
    if _TOKEN_NAME.fullmatch(name):
        return Entry(_TOKEN, Certainty.ASSUMED)
    if _STEP_NAME.fullmatch(name):
        return Entry(_STEP, Certainty.ASSUMED)
    if _REQUEST_NAME.fullmatch(name) or (function.cls < 0 and not name.startswith("_") and _works_on_data(function)):
        return Entry(_REQUEST, Certainty.ASSUMED)
    return Entry(_REQUEST, Certainty.ASSUMED) if _infers(function, name) else None


def _infers(function: FunctionFact, name: str) -> bool:
    """Whether a public function says that it is there for inference: by its mode, or, as weights are changed without
    gradients too, by steps or tokens that it takes without them, or by texts or images that it is given."""
    if name.startswith("_") or Region(function.regions) != Region.INFERENCE or _CHANGES.search(name):
        return False
    steps = any(loop.kind in (LoopKind.STEPS.value, LoopKind.TOKENS.value) for loop in function.loops)
    asked = function.cls >= 0 and any(map(_DATA_NAME.fullmatch, function.parameters))
    return steps or asked or "torch.inference_mode" in function.decorators


def _works_on_data(function: FunctionFact) -> bool:
    """Whether a function of a library loops over a user's tensors, or asks a model about a list of inputs."""
    if not any(call.loops and not call.guard & GUARD_SKIP for call in function.calls):
        return False
    models = any(_MODEL_NAME.fullmatch(name) for name in function.parameters)
    if function.tensors and not models and not _CHANGES.search(function.qualname):
        return True
    if any(_TENSOR_NAME.fullmatch(name) for name in function.parameters):
        return True
    if any("Tensor" in repr(ref) for _, ref in function.annotations):
        return True
    asked = [name for name in function.parameters if _ASKED_NAME.fullmatch(name)]
    return bool(asked) and models


def _module_path(own: str, shorts: list[str]) -> tuple[Level, ...]:
    if any(_CAUSAL_CLASS.fullmatch(short) for short in shorts):
        return _TOKEN
    if _DENOISER_CLASS.fullmatch(own):
        return _STEP
    return _LAYER if _LAYER_CLASS.fullmatch(own) and not _WHOLE_CLASS.fullmatch(own) else _REQUEST
