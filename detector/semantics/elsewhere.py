"""Code that no service on a GPU comes to, by the names it goes by: back ends of other makers' machines, tools to find
faults with, and the plain forms of operators that stand beside their kernels.

What it calls does not run more often for that, and how often it runs itself is not known.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

#: Machines that no target names, as a word of a folder or module: ``hardware_backend/npu/``, ``intel_amx_backend.py``.
_MACHINES = r"npu|ascend|hpu|gaudi|habana|mlu|musa|amx|ipex|tpu|neuronx?|dlinfer|mindspore"
_MACHINE_PATH = re.compile(
    rf"(^|[/_])({_MACHINES})(?=[/_.])|(^|/)cpu(/|\.py$)|(^|/)cpu_(attn|attention|backend|kernels?|ops|platform|worker)\.py$"
)
#: … of a class, in its capitals, and of a method that does the work there.
_MACHINE_NAME = re.compile(
    r"(Ascend|N[Pp][Uu]|H[Pp][Uu]|Gaudi|M[Ll][Uu]|M[Uu][Ss][Aa]|AMX|T[Pp][Uu]|MindSpore)(?=[A-Z_.\d]|$)"
    r"|(^|[._])forward_(npu|hpu|tpu|mlu|musa|cpu|oot)(?=\.|$)"
)
#: Tools that compare or log what a model computes.
_TOOLS = re.compile(
    r"(^|/)(debug(ging|ger)?(_utils|_tools)?|comparators?|dumper)/|(^|/)(debug(ger)?(_\w+)?|dump(er)?_\w+|\w+_logging)\.py$"
)
_TOOL_NAME = re.compile(r"(^|[._])debug_\w+|Debug(ger|Helper|Hook)s?(?=[A-Z_.]|$)")
#: What makes a model ready before it is served.
_SCRIPTS = re.compile(r"(^|/)(quantize|calibrate)_\w+\.py$|(^|/)(model_|component_|weight_)loaders?/")
#: Plain forms of operators, which run where there is no kernel.
_PLAIN_PATH = re.compile(r"(^|/)torch_(native|ref|reference)(_\w+)?(\.py$|/)|(^|/)torch_ops/|(^|/)backends?/default/")
_PLAIN_NAME = re.compile(r"TorchNative|(^|\.)(_?naive_\w+|\w+_naive|\w+_reference)$")
_NAME = re.compile("|".join(pattern.pattern for pattern in (_MACHINE_NAME, _TOOL_NAME, _PLAIN_NAME)))
#: The plain form of an operator with a method a machine, compiled with the model around it or run without kernels. It
#: is the usual one in classes that choose by themselves.
_NATIVE = re.compile(r"(^|\.)forward_native(?=\.|$)")
_DISPATCHES = re.compile(r"(^|\.)(CustomOp|MultiPlatformOp|MultiPlatformLayer)$")


@functools.lru_cache(maxsize=4096)
def _aside(path: str) -> bool:
    return any(pattern.search(path) for pattern in (_MACHINE_PATH, _TOOLS, _SCRIPTS, _PLAIN_PATH))


def runs_elsewhere(path: str, qualname: str) -> bool:
    """Whether a function of a file runs on other machines, to find faults, or where there is no kernel, if ever."""
    return _aside(path.replace("\\", "/")) or _NAME.search(qualname) is not None


def is_plain_form(qualname: str, bases: Iterable[str]) -> bool:
    """Whether a method is the plain form beside the kernels that its class's base chooses among, by machine."""
    return _NATIVE.search(qualname) is not None and any(map(_DISPATCHES.search, bases))
