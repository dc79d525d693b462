"""AWP308 unfolded-batchnorm."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.values import Kind, Value
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, often, served_frequency, short, whole_program
from awp_lint.rules.flow import resolve
from awp_lint.rules.fusion.context import fused_elsewhere

_CONV = re.compile(r"(^|\.)Conv(Transpose)?[123]d$")
_NORM = re.compile(r"(^|\.)(Sync)?BatchNorm([123]d)?$")
_FOLDS = re.compile(
    r"fuse_conv|fuse_modules|fold_b|fuse_bn|bn_fold|fuse_model|merge_bn|fuse_conv_bn|def fuse\b|\.fuse\("
)
_TRAINS = re.compile(r"\.backward\(|optim(izer)?\.|\.train\(\s*(True)?\s*\)|Trainer\b|LightningModule|\.fit\(")
_SERVES = re.compile(r"\.eval\(\)")


class UnfoldedBatchNorm(Rule):
    """A convolution and the batch normalisation of its output left apart."""

    id = "AWP308"
    name = "unfolded-batchnorm"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 20.0
    event = Event.LAUNCHES
    words = (b"BatchNorm",)
    nodes = (ast.Call,)

    summary = "batch normalisation runs as a pass of its own after a convolution"
    what = """
        `self.bn(self.conv(x))`, in one expression or two statements, where both are the library's own layers, in a
        program that serves the model and never trains it.
        """
    why = """
        At inference batch normalisation is a fixed scale and shift a channel, which the convolution's weights and bias
        can take up: one pass over the activations less for each convolution.
        """
    fine = """
        - Model definitions that are trained as well: there the two must stay apart, and the place to fold them is after
          loading. Nothing in one file tells a library's model from a service's, so the finding is shown at low
          confidence unless the same file puts the model into `eval` and does not train, or a program whose callers are
          all seen runs it without gradients and nothing in it fuses.
        - Code that folds (`fuse_conv_bn_eval`, `fuse_modules`), compiled regions (TorchInductor folds when frozen).
        - A batch normalisation before the convolution, or of something else.
        """
    safety = """
        No automatic rewrite: call `torch.nn.utils.fusion.fuse_conv_bn_eval(conv, bn)` on the loaded model in `eval`
        mode and replace the batch norm by `nn.Identity()`.
        No diff, since it has to happen after the weights are loaded and before anything is compiled.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.fusion.fuse_conv_bn_eval.html",
        "https://docs.pytorch.org/tutorials/intermediate/fx_conv_bn_fuser.html",
    )
    bad = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.conv = nn.Conv2d(3, 64, 3)
                self.bn = nn.BatchNorm2d(64)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.relu(self.bn(self.conv(x)))

        net = Net().eval().cuda()

        @torch.inference_mode()
        def predict(image: torch.Tensor) -> torch.Tensor:
            return net(image.cuda())
        """
    good = """
        import torch
        from torch import nn
        from torch.nn.utils.fusion import fuse_conv_bn_eval

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.conv = nn.Conv2d(3, 64, 3)
                self.bn = nn.BatchNorm2d(64)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.relu(self.bn(self.conv(x)))

        net = Net().eval()
        net.conv, net.bn = fuse_conv_bn_eval(net.conv, net.bn), nn.Identity()
        net.cuda()

        @torch.inference_mode()
        def predict(image: torch.Tensor) -> torch.Tensor:
            return net(image.cuda())
        """

    def convinced(self, view: FunctionView, file: FileView) -> bool:
        return ".eval()" in file.text or whole_program(view.frequency(view.node))

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if len(node.args) != 1 or node.keywords:
            return
        source = resolve(node.args[0], view)
        if not isinstance(source, ast.Call) or not _is(view.value(node.func), _NORM):
            return
        if not _is(view.value(source.func), _CONV):
            return
        if fused_elsewhere(view, node) or _FOLDS.search(file.text):
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        serves = _SERVES.search(file.text) is not None or _served_whole(frequency, view, file)
        serves = serves and _TRAINS.search(file.text) is None
        norm, conv = short(node.func, 40), short(source.func, 40)
        yield Candidate(
            node=node,
            message=f"`{norm}` is a pass of its own over the output of `{conv}` {often(frequency)}".rstrip(),
            action=f"fold `{norm}` into `{conv}` after loading (`fuse_conv_bn_eval`)",
            confidence=Confidence.MEDIUM if serves and frequency.known else Confidence.LOW,
            frequency=frequency,
            why=frequency_reason(frequency),
        )


def _served_whole(frequency: Frequency, view: FunctionView, file: FileView) -> bool:
    """Whether a program of which all is seen runs it without gradients, and folds nothing anywhere."""
    return whole_program(frequency) and view.callers().off and not file.speaks_of("fuse")


def _is(value: Value, pattern: re.Pattern[str]) -> bool:
    return value.kind is Kind.MODULE and value.cls is not None and pattern.search(value.cls) is not None
