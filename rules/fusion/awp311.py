"""AWP311 channels-first-conv."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, callee, frequency_reason, short
from awp_lint.rules.nodemap import Definition

_CONVOLUTIONAL = re.compile(
    r"(resnet|resnext|efficientnet|convnext|mobilenet|regnet|densenet|vgg|googlenet|inception|shufflenet|squeezenet"
    r"|mnasnet|deeplab|fcn_|lraspp|unet|fasterrcnn|maskrcnn|retinanet|ssd|fcos|keypointrcnn)",
    re.IGNORECASE,
)
_SEGMENTERS = frozenset({"Unet", "UnetPlusPlus", "FPN", "DeepLabV3Plus", "Linknet", "MAnet", "PSPNet"})
_BUILDERS = _SEGMENTERS | {"create_model", "get_model"}
_HALF = re.compile(r"\.half\(\)|float16|bfloat16|\.bfloat16\(\)|autocast")
_OFF = re.compile(r"\b\w*(half|fp16|bf16)\w*\s*(:\s*bool\s*)?=\s*False")
_OPTION = re.compile(r"(self\.)?\w*(half|fp16|bf16)\w*")
_DEVICE = re.compile(r"cuda")
_LAST = re.compile(r"channels_last|torch\.compile|tensorrt|onnx", re.IGNORECASE)


class ChannelsFirstConv(Rule):
    """A convolution network at half precision in the default layout."""

    id = "AWP311"
    name = "channels-first-conv"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 500.0
    event = Event.NONE
    words = (b"torchvision", b"timm", b"segmentation_models_pytorch")
    anywhere = True
    nodes = (ast.Call,)

    summary = "a half-precision convolution network runs in the channels-first layout"
    what = """
        A convolution network of torchvision, timm or segmentation_models_pytorch, used at half precision (or under
        autocast) on CUDA in a file that never mentions `channels_last`.
        """
    why = """
        Tensor cores want the channels innermost. From the default layout cuDNN transposes the activations before and
        after its kernels, or picks slower kernels.
        """
    fine = """
        - float32 without autocast, CPU, exported or compiled models (TorchInductor picks the layout).
        - Half precision behind an option that is off by default (`half=False`).
        - Transformers: they have no convolutions to speak of.
        - Very small batches or channel counts, where the gain is noise: the A/B run decides.
        """
    safety = """
        Unsafe: strides change, which code that calls `.view` on activations can notice. The inputs should be converted
        as well (`images.to(memory_format=torch.channels_last)`), else the first layer does it.
        """
    tolerance = 16
    references = ("https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",)
    bad = """
        import torch
        import torchvision

        model = torchvision.models.resnet50(weights="DEFAULT").eval().half().cuda()

        @torch.inference_mode()
        def predict(images: torch.Tensor) -> torch.Tensor:
            return model(images.cuda().half())
        """
    good = """
        import torch
        import torchvision

        model = torchvision.models.resnet50(weights="DEFAULT").eval().half().cuda()
        model = model.to(memory_format=torch.channels_last)

        @torch.inference_mode()
        def predict(images: torch.Tensor) -> torch.Tensor:
            return model(images.cuda().half().to(memory_format=torch.channels_last))
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        built = callee(node)
        if built not in _BUILDERS and not _CONVOLUTIONAL.search(built):
            return
        name = _network(node, view)
        if name is None or _LAST.search(file.text) or not (_HALF.search(file.text) and _DEVICE.search(file.text)):
            return
        if _by_option(file):
            return
        if view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED) or ".backward(" in file.text:
            return
        if file.target.device != "cuda":
            return
        frequency = view.frequency(node)
        yield Candidate(
            node=node,
            message=f"`{short(node, 50)}` runs at half precision in the channels-first layout",
            action="convert it with `.to(memory_format=torch.channels_last)`, and its inputs too",
            confidence=self.confidence,
            frequency=frequency,
            why=(f"`{name}` is a convolution network", *frequency_reason(frequency)[:1]),
            data=node,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        call = candidate.data
        if not isinstance(call, ast.Call):
            return None
        definition.node(call)
        end = definition.range(call)[1]
        layout = definition.torch_name("torch.channels_last")
        return Fix(
            title="use the channels-last layout",
            safety=Safety.UNSAFE,
            edits=(Edit(end, end, f".to(memory_format={layout})"),),
            effects=(Effect.MEMORY, Effect.NUMERICS),
        )


def _by_option(file: FileView) -> bool:
    """Whether half precision is an option of the file that is off by default, and nothing else speaks of it."""
    if _OFF.search(file.text) is None:
        return False
    below: set[int] = set()
    for node in ast.walk(ast.parse(file.text)):  # of the file's tree a scan keeps only what can hold a finding
        if isinstance(node, ast.If) and _OPTION.fullmatch(ast.unparse(node.test)):
            below.update(range(node.lineno, (node.body[-1].end_lineno or node.lineno) + 1))
    return all(file.text.count("\n", 0, found.start()) + 1 in below for found in _HALF.finditer(file.text))


def _network(call: ast.Call, view: FunctionView) -> str | None:
    """The name of the convolution network that a call builds."""
    dotted = view.qualified(call.func) or ""
    if dotted.startswith("torchvision.models."):
        name = callee(call)
        if name == "get_model":
            return _literal(argument(call, 0, "name"))
        return name if name[:1].islower() and _CONVOLUTIONAL.search(name) else None
    if dotted in ("timm.create_model", "timm.models.create_model"):
        return _literal(argument(call, 0, "model_name"))
    if dotted.startswith("segmentation_models_pytorch.") and callee(call) in _SEGMENTERS:
        return callee(call)
    return None


def _literal(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CONVOLUTIONAL.search(node.value):
        return node.value
    return None
