"""Modules that do the same in training mode as in eval mode."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.view import FileView
from awp_lint.rules.fusion.context import whole_tree

#: Layers of PyTorch in which nothing is random and nothing is counted, and what holds others.
_ALIKE = re.compile(
    r"Module(List|Dict)?|Sequential|Identity|Parameter|Linear|Bilinear|Conv(Transpose)?\dd|Embedding(Bag)?|(Long)?Tensor"
    r"|(Layer|RMS|Group)Norm|(Log)?Softmax|Re[Ll][Uu]6?|LeakyReLU|PReLU|ELU|SELU|GELU|SiLU|Mish|Sigmoid|Tanh|Softplus"
    r"|Hard(swish|sigmoid|tanh)|GLU|(Adaptive)?(Avg|Max)Pool\dd|Upsample|Flatten|Unflatten|Pixel(Uns|S)huffle|\w+Pad\dd"
)
#: What tells the modes apart by itself.
_TOLD = re.compile(r"\btraining\b|[Dd]ropout|drop_path|batch_norm|instance_norm|rrelu|bernoulli|\brand")
#: Where no layers come from.
_PLAIN = re.compile(r"(typing|math|functools|collections|dataclasses|abc|einops|__future__)(\.|$)")


def alike_in_training(cls: str | None, file: FileView) -> bool:
    """Whether a class of the file holds nothing that differs in training, by the layers that it and its parts name.

    What comes from elsewhere than PyTorch may differ.
    """
    tree = whole_tree(file)
    known = {s.name: s for s in tree.body if isinstance(s, ast.ClassDef | ast.FunctionDef)}
    imports = [s for s in tree.body if isinstance(s, ast.ImportFrom) and not _PLAIN.match(s.module or "")]
    foreign = {
        name.asname or name.name
        for s in imports
        for name in s.names
        if s.level or not (s.module or "").startswith("torch") or (name.name[:1].isupper() and not _alike(name.name))
    }
    pending, seen = [(cls or "").rpartition(".")[2]], set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        found = known.get(name)
        if found is None or _TOLD.search(ast.unparse(found)):
            return False
        named = {part.id for part in ast.walk(found) if isinstance(part, ast.Name)}
        layers = {part.attr for part in ast.walk(found) if isinstance(part, ast.Attribute) and part.attr[:1].isupper()}
        if named & foreign or not all(map(_alike, layers)):
            return False
        pending += sorted(named & known.keys())
    return True


def _alike(layer: str) -> bool:
    return _ALIKE.fullmatch(layer) is not None
