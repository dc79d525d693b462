"""Instances of classes: which kind of object a class makes, by its bases or, for libraries, by its name."""

from __future__ import annotations

from awp_lint.detector.semantics.interpret.machine import Context
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Value, make

_MODULE_BASES = frozenset(
    {
        "torch.nn.Module",
        "torch.nn.modules.module.Module",
        "transformers.PreTrainedModel",
        "diffusers.ModelMixin",
        "lightning.LightningModule",
        "pytorch_lightning.LightningModule",
        "torch.jit.ScriptModule",
    }
)
_MODEL_LIBRARIES = frozenset(
    {"transformers", "diffusers", "timm", "peft", "sentence_transformers", "open_clip", "torchvision", "optimum"}
)
_NOT_MODULES = frozenset({"Parameter", "ParameterList", "ModuleList", "ModuleDict", "ParameterDict", "Buffer"})


def _camel(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()


def by_name(short: str) -> Kind:
    """The kind of a library class's instances, from the usual endings of class names."""
    if short.endswith("Config"):
        return Kind.CONFIG
    if "Tokenizer" in short or short.endswith(("FeatureExtractor", "ImageProcessor")):
        return Kind.TOKENIZER
    if short.endswith("Processor") and not short.endswith(("LogitsProcessor", "AttnProcessor")):
        return Kind.TOKENIZER
    if short in ("BatchEncoding", "BatchFeature"):
        return Kind.ENCODING
    if short.endswith(("Output", "Cache", "Scheduler", "Streamer", "Criteria", "List", "Warper")):
        return Kind.INSTANCE
    if short.endswith(("Model", "Encoder", "Decoder", "Transformer", "Layer")) or "For" in short:
        return Kind.MODULE
    return Kind.INSTANCE


def kind_of(context: Context, cls: str) -> Kind | None:
    """MODULE, TOKENIZER, CONFIG, … or INSTANCE for a class; None where nothing is known of it."""
    short = cls.rpartition(".")[2]
    if cls.startswith("torch.nn.") and _camel(short):
        return None if short in _NOT_MODULES else Kind.MODULE
    outside = context.outside
    if outside.is_class(cls):
        bases = outside.bases(cls)
        if not bases.isdisjoint(_MODULE_BASES):
            return Kind.MODULE
        for base in bases:
            if base.startswith("torch.nn.") and kind_of_library(base) is Kind.MODULE:
                return Kind.MODULE
        for base in sorted(bases):
            root = base.partition(".")[0]
            if root in _MODEL_LIBRARIES:
                found = by_name(base.rpartition(".")[2])
                if found is not Kind.INSTANCE:
                    return found
        found = by_name(short)
        return found if found in (Kind.CONFIG, Kind.TOKENIZER, Kind.ENCODING) else Kind.INSTANCE
    return kind_of_library(cls)


def kind_of_library(cls: str) -> Kind | None:
    """The kind of instances of a library's class, None where the name is not known to be a class."""
    root, _, rest = cls.partition(".")
    short = cls.rpartition(".")[2]
    if cls.startswith("torch.nn.") and _camel(short) and short not in _NOT_MODULES:
        return Kind.MODULE
    if root in _MODEL_LIBRARIES and rest and _camel(short):
        return by_name(short)
    return None


def instance(context: Context, cls: str, *, declared: bool = False) -> Value:
    """An instance of a class. ``declared``: known by annotation, so it may live anywhere; else made just now."""
    known = context.instances.get((cls, declared))
    if known is None:
        known = context.instances[cls, declared] = _instance(context, cls, declared)
    return known


def _instance(context: Context, cls: str, declared: bool) -> Value:
    if cls in ("torch.nn.ModuleList", "torch.nn.ParameterList"):
        return make(Kind.SEQUENCE, cls=cls, certainty=Certainty.PROVEN)
    if cls in ("torch.nn.ModuleDict", "torch.nn.ParameterDict"):
        return make(Kind.MAPPING, cls=cls, certainty=Certainty.PROVEN)
    if context.symbolic and not cls.startswith(("torch.", "numpy.")):
        return make(Kind.UNKNOWN, cls=f"<{cls}>")
    kind = kind_of(context, cls)
    if kind is None:
        return UNKNOWN
    device = Device.UNKNOWN
    certainty = Certainty.PROVEN
    if kind is Kind.MODULE:
        device = context.ambient if declared else Device.HOST
        certainty = Certainty.ASSUMED if declared else Certainty.PROVEN
    return make(kind, device, DTypeClass.UNKNOWN, cls=cls, fresh=not declared, certainty=certainty)
