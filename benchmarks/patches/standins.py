"""Small stand-ins for the libraries that the snippets import, so that they run where only torch is installed.

A model is a real network of two layers: asking it for eager or fused attention, a cache or none, a merged adapter or
one beside the weights runs different sums that come to the same. The rest (web frameworks, progress bars, engines) only
keeps what it is given.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, HEADS = 32, 16, 2


class Output(dict[str, Any]):
    """A model's outputs: by name, by attribute and by number."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, key: Any) -> Any:
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)


class Batch(Output):
    """What a tokenizer returns."""

    def to(self, device: Any) -> Batch:
        return Batch({name: tensor.to(device) for name, tensor in self.items()})


class Tokenizer:
    """Letters are tokens."""

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> Tokenizer:
        return cls()

    def __call__(self, texts: Any, **options: Any) -> Batch:
        rows = [texts] if isinstance(texts, str) else list(texts)
        rows = [" ".join(row) if isinstance(row, list) else row for row in rows]
        longest = 24 if options.get("padding") == "max_length" else max(map(len, rows))
        ids = torch.tensor([[ord(c) % VOCABULARY for c in row.ljust(longest)] for row in rows])
        batch = Batch({"input_ids": ids})
        if "padding" in options and "truncation" in options:
            batch["attention_mask"] = torch.tensor([[n < len(row) for n in range(longest)] for row in rows])
        return batch

    def decode(self, ids: Any, **options: Any) -> str:
        return " ".join(str(int(one)) for one in ids)


class Model(nn.Module):
    """A decoder of one attention layer. ``options`` are those it was loaded with."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> Any:
        torch.manual_seed(len(name))
        dtype = options.get("dtype", options.get("torch_dtype"))
        return cls(**options).to(options.get("device_map"), dtype or torch.float32)

    @classmethod
    def from_config(cls, config: Any, **options: Any) -> Any:
        return cls.from_pretrained("config", **options)

    def forward(self, input_ids: torch.Tensor, output_hidden_states: bool = False, **options: Any) -> Output:
        return self.run(input_ids, None, output_hidden_states)

    def run(self, ids: torch.Tensor, past: Any, states: bool = False) -> Output:
        """One pass, over ``past`` keys and values where there are some."""
        hidden = self.embed(ids)
        q, k, v = self.qkv(hidden).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        length = q.shape[2]
        mask = torch.ones(length, k.shape[2], dtype=torch.bool, device=ids.device).tril(k.shape[2] - length)
        chosen = self.options.get("attn_implementation", self.options.get("_attn_implementation"))
        if chosen == "eager" or self.options.get("use_flash_attention") is False:
            scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(~mask, float("-inf"))
            mixed = scores.softmax(-1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        last = hidden + self.drop(mixed.transpose(1, 2).flatten(2))
        out = Output(last_hidden_state=last, logits=self.head(last))
        if states:
            out["hidden_states"] = (hidden, last)
        return Output(out, past_key_values=(k, v))

    def get_image_features(self, image: torch.Tensor) -> torch.Tensor:
        return image * 2

    @torch.no_grad()
    def generate(self, input_ids: torch.Tensor, max_new_tokens: int = 8, **options: Any) -> Any:
        options = {**vars(options.pop("generation_config", None) or types.SimpleNamespace()), **options}
        ids, past = input_ids, None
        for _ in range(max_new_tokens):
            out = self.run(ids if past is None else ids[:, -1:], past)
            past = out.past_key_values if options.get("use_cache", True) else None
            ids = torch.cat([ids, out.logits[:, -1:].argmax(-1)], dim=1)
        return Output(sequences=ids) if options.get("return_dict_in_generate") else ids


class Classifier(Model):
    """Looks at what is no padding."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **options: Any) -> Output:
        kept = attention_mask[..., None].to(self.head.weight.dtype)
        return Output(logits=self.head((self.embed(input_ids).tanh() * kept).sum(1) / kept.sum(1)))


class Adapter(nn.Module):
    """A model and a low-rank update of its head, beside it or merged."""

    def __init__(self, base: Model) -> None:
        super().__init__()
        self.base = base
        self.down, self.up = (nn.Parameter(torch.randn(shape) * 0.1) for shape in ((WIDTH, 4), (4, VOCABULARY)))
        self.to(base.head.weight.device, base.head.weight.dtype)
        base.head.register_forward_hook(self._add)
        self.merged = False

    @classmethod
    def from_pretrained(cls, base: Model, name: str, **options: Any) -> Adapter:
        torch.manual_seed(3)
        return cls(base)

    def _add(self, layer: nn.Module, inputs: tuple[torch.Tensor], out: torch.Tensor) -> torch.Tensor:
        return out if self.merged else out + inputs[0] @ self.down @ self.up

    def merge_and_unload(self) -> Model:
        self.merged = True
        with torch.no_grad():
            self.base.head.weight += (self.down @ self.up).T
        return self.base

    def generate(self, *inputs: Any, **options: Any) -> Any:
        return self.base.generate(*inputs, **options)


class Pipe:
    """A diffusion pipeline: an image is what a low-rank adapter makes of the prompt."""

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> Pipe:
        return cls()

    def to(self, device: str) -> Pipe:
        self.model = Model.from_pretrained("pipe").to(device)
        return self

    def load_lora_weights(self, name: str, **options: Any) -> None:
        self.adapter = Adapter.from_pretrained(self.model, name)

    def fuse_lora(self) -> None:
        self.adapter.merge_and_unload()

    def __call__(self, prompt: str, **options: Any) -> Output:
        ids = Tokenizer()(prompt)["input_ids"].to(self.model.head.weight.device)
        return Output(images=[self.model(ids).logits])


def convolutions(*names: Any, **options: Any) -> nn.Module:
    """A small convolution network."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class App:
    """Keeps handlers as they are."""

    def __init__(self, *names: Any) -> None: ...

    def _keep(self, *path: Any, **options: Any) -> Callable[[Any], Any]:
        return lambda handler: handler

    get = post = websocket = route = _keep


class Keeps:
    """Whatever an engine or a configuration was given."""

    def __init__(self, *values: Any, **options: Any) -> None:
        self.values = values
        vars(self).update(options)


class Image(Keeps):
    """An image of some size."""

    def convert(self, mode: str) -> Image:
        return self


def _pipeline(*names: Any, **options: Any) -> Callable[[str], list[float]]:
    model = Model.from_pretrained("pipeline").eval()
    return lambda text: model(Tokenizer()(text)["input_ids"]).logits.mean(-1).tolist()


class Encoder(Keeps):
    """Sentences to vectors."""

    def encode(self, texts: list[str], **options: Any) -> torch.Tensor:
        made: torch.Tensor = Model.from_pretrained("encoder").eval()(Tokenizer()(texts)["input_ids"]).last_hidden_state
        return made.mean(1)


_MODELS = ("AutoModel", "AutoModelForCausalLM", "CLIPModel", "UNet2DConditionModel", "AutoencoderKL")
_CONTENTS: dict[str, dict[str, Any]] = {
    "transformers": {
        **dict.fromkeys(_MODELS, Model),
        "AutoModelForSequenceClassification": Classifier,
        "AutoTokenizer": Tokenizer,
        "AutoConfig": Model,
        "GenerationConfig": Keeps,
        "pipeline": _pipeline,
    },
    "diffusers": {**dict.fromkeys(_MODELS, Model), "DiffusionPipeline": Pipe},
    "peft": {"PeftModel": Adapter},
    "fastapi": {"FastAPI": App, "UploadFile": object, "Request": object},
    "fastapi.responses": {"JSONResponse": lambda value: value},
    "flask": {"Flask": App},
    "timm": {"create_model": convolutions},
    "torchvision": {},
    "torchvision.models": {"resnet50": convolutions, "resnet18": convolutions},
    "segmentation_models_pytorch": {"Unet": convolutions},
    "sentence_transformers": {"SentenceTransformer": Encoder},
    "vllm": {"LLM": Keeps, "AsyncEngineArgs": Keeps},
    "vllm.engine": {},
    "vllm.engine.arg_utils": {"EngineArgs": Keeps},
    "sglang": {"Engine": Keeps},
    "lmdeploy": {"PytorchEngineConfig": Keeps},
    "tqdm": {"tqdm": lambda values: values},
    "requests": {"get": lambda url, timeout: types.SimpleNamespace(content=url.encode())},
    "soundfile": {"read": lambda file: (file.read(), 16000)},
    "PIL": {"Image": types.SimpleNamespace(open=lambda file: Image(size=len(file.read())))},
    "whisper": {"load_model": lambda name: types.SimpleNamespace(transcribe=lambda path: {"text": name + path})},
    "serving": {
        "load_worker": lambda: types.SimpleNamespace(
            generate_gate=lambda params: {"text": params["texts"]}, embed_text=lambda texts: torch.arange(len(texts))
        )
    },
}


@contextmanager
def installed() -> Iterator[None]:
    """All of them in the place of what is installed, for a while."""
    before = dict(sys.modules)
    for name, contents in _CONTENTS.items():
        module = types.ModuleType(name)
        vars(module).update(contents, __spec__=ModuleSpec(name, None))
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    try:
        yield
    finally:
        for name in _CONTENTS:
            sys.modules.pop(name, None)
        sys.modules.update({name: module for name, module in before.items() if name in _CONTENTS})
