"""What equality and timing ask of the accelerator; nothing on a machine without one."""

from __future__ import annotations

import sys
from typing import Any

_DELAY_S = 0.03  # on the stream before the patched code: a read that does not wait finds what was there before
_CYCLES = 2e9  # a second, about; a longer delay does no harm
_POISON = 0x7F  # as floats this is large, as integers absurd


class Device:
    """The devices that a process uses. This class is the CPU: everything is done when it returns."""

    def settle(self) -> None:
        """Wait until nothing is under way."""

    def delay(self, like: list[Any]) -> None:
        """Hold up the streams that the patched code will use, and spoil host memory that it may be handed.

        ``like``: host tensors of the sizes that it is expected to return.
        """

    def idle(self) -> bool:
        """Whether the current stream has nothing to do."""
        return True

    def states(self) -> Any:
        """The state of the devices' random numbers."""
        return None

    def restore(self, states: Any) -> None:
        """Put it back."""

    def memory(self) -> int:
        """The largest number of bytes held since ``forget_memory``; 0 where not known."""
        return 0

    def held(self) -> int:
        """Bytes held now; 0 where not known."""
        return 0

    def forget_memory(self) -> None:
        """Begin anew."""

    def room(self) -> int:
        """Bytes that copies of inputs may take."""
        return 512 << 20


class Cuda(Device):
    """The CUDA devices of the process."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def settle(self) -> None:
        """Wait for all streams of all devices that are in use."""
        cuda = self.torch.cuda
        for number in range(cuda.device_count()):
            if cuda.memory_reserved(number) or number == cuda.current_device():
                cuda.synchronize(number)

    def delay(self, like: list[Any]) -> None:
        """A kernel that only waits, and pinned blocks of the same sizes filled and given back."""
        torch = self.torch
        for tensor in like:
            size = tensor.numel() * tensor.element_size()
            if size:
                block = torch.empty(size, dtype=torch.uint8, pin_memory=True)
                block.fill_(_POISON)
                del block
        torch.cuda._sleep(int(_DELAY_S * _CYCLES))

    def idle(self) -> bool:
        """Whether the current stream is empty."""
        return bool(self.torch.cuda.current_stream().query())

    def states(self) -> Any:
        """Of all devices."""
        return self.torch.cuda.get_rng_state_all()

    def restore(self, states: Any) -> None:
        """Of all devices."""
        if states is not None:
            self.torch.cuda.set_rng_state_all(states)

    def memory(self) -> int:
        """Over all devices."""
        cuda = self.torch.cuda
        return sum(int(cuda.max_memory_allocated(n)) for n in range(cuda.device_count()))

    def held(self) -> int:
        """Over all devices."""
        cuda = self.torch.cuda
        return sum(int(cuda.memory_allocated(n)) for n in range(cuda.device_count()))

    def forget_memory(self) -> None:
        """On all devices."""
        for number in range(self.torch.cuda.device_count()):
            self.torch.cuda.reset_peak_memory_stats(number)

    def room(self) -> int:
        """A quarter of what is free."""
        free, _ = self.torch.cuda.mem_get_info()
        return max(int(free) // 4, 64 << 20)


def device() -> Device:
    """The process's. Never makes a CUDA context."""
    torch: Any = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            return Cuda(torch)
    except Exception:
        return Device()
    return Device()
