"""The states of the random generators that a process has, and which of them two runs have drawn from differently."""

from __future__ import annotations

import random
import sys
from typing import Any

from awp_lint.detector.verification.agent.device import Device


class Randoms:
    """The process's random states: Python's, NumPy's, torch's on the CPU and on the devices in use."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.torch: Any = sys.modules.get("torch")
        self.numpy: Any = getattr(sys.modules.get("numpy"), "random", None)

    def read(self) -> tuple[Any, ...]:
        """All states; None for what the process has not loaded."""
        return (
            random.getstate(),
            self.torch.get_rng_state() if self.torch is not None else None,
            self.numpy.get_state() if self.numpy is not None else None,
            self.device.states(),
        )

    def restore(self, states: tuple[Any, ...]) -> None:
        """Put them back."""
        plain, torch, numpy, devices = states
        random.setstate(plain)
        if torch is not None:
            self.torch.set_rng_state(torch)
        if numpy is not None:
            self.numpy.set_state(numpy)
        self.device.restore(devices)


def drawn_from(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """Which random streams stand elsewhere; "" where none does."""
    names = []
    torch: Any = sys.modules.get("torch")
    if one[0] != other[0]:
        names.append("random")
    if one[1] is not None and not torch.equal(one[1], other[1]):
        names.append("torch's CPU generator")
    if one[2] is not None and (one[2][2] != other[2][2] or bool((one[2][1] != other[2][1]).any())):
        names.append("numpy.random")
    if one[3] is not None and any(not torch.equal(a, b) for a, b in zip(one[3], other[3])):
        names.append("the device's generator")
    return ", ".join(names)
