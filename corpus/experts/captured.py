"""A function of tensors as a CUDA graph: recorded once for each set of shapes, replayed from then on.

    step = Captured(model.step)
    logits = step((tokens, positions), end)         model.step(tokens, positions, end)

What a call gives lies in buffers that the next call of the same shapes overwrites. Without a device the function is
called as it is. The function may write to buffers of its own (a cache), as long as running it twice writes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch

WARM_UPS = 3


class Captured:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.recorded: dict[Hashable, _Recorded] = {}

    def __call__(self, tensors: tuple[torch.Tensor, ...], *constants: Hashable) -> Any:
        if not tensors[0].is_cuda:
            return self.function(*tensors, *constants)
        key = (*((tensor.shape, tensor.dtype) for tensor in tensors), *constants)
        if key not in self.recorded:
            self.recorded[key] = _Recorded(self.function, tensors, constants)
        return self.recorded[key](tensors)


class _Recorded:
    def __init__(
        self, function: Callable[..., Any], tensors: tuple[torch.Tensor, ...], constants: tuple[Hashable, ...]
    ) -> None:
        self.inputs = tuple(tensor.clone() for tensor in tensors)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                function(*self.inputs, *constants)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.outputs = function(*self.inputs, *constants)

    def __call__(self, tensors: tuple[torch.Tensor, ...]) -> Any:
        for mine, given in zip(self.inputs, tensors):
            mine.copy_(given)
        self.graph.replay()
        return self.outputs
