"""What devices can do at most, from their makers' data sheets: dense arithmetic by dtype, and memory bandwidth.

A measured ceiling lies some percent below; a ratio to these is a ratio to the data sheet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peaks:
    """TFLOP/s without sparsity by dtype, and TB/s of device memory."""

    device: str
    tflops: dict[str, float]
    tb_per_s: float

    @property
    def best(self) -> tuple[str, float]:
        """The dtype that inference usually runs in (16-bit, else what there is) and its TFLOP/s."""
        name = "bf16" if "bf16" in self.tflops else next(iter(self.tflops))
        return name, self.tflops[name]

    @property
    def ridge(self) -> float:
        """FLOP a byte at which arithmetic and bandwidth take equally long, for :attr:`best`."""
        return self.best[1] / self.tb_per_s


# The first pattern that matches the device's name decides.
_TABLE: tuple[tuple[str, Peaks], ...] = (
    ("B200", Peaks("B200", {"bf16": 2250, "fp8": 4500, "tf32": 1125, "fp32": 75}, 8.0)),
    ("H200 NVL", Peaks("H200 NVL", {"bf16": 835, "fp8": 1671, "tf32": 418, "fp32": 60}, 4.8)),
    ("H200", Peaks("H200", {"bf16": 989, "fp8": 1979, "tf32": 494, "fp32": 67}, 4.8)),
    ("H100 NVL", Peaks("H100 NVL", {"bf16": 835, "fp8": 1671, "tf32": 418, "fp32": 60}, 3.9)),
    ("H100.*PCIe", Peaks("H100 PCIe", {"bf16": 756, "fp8": 1513, "tf32": 378, "fp32": 51}, 2.0)),
    ("H100", Peaks("H100 SXM", {"bf16": 989, "fp8": 1979, "tf32": 494, "fp32": 67}, 3.35)),
    (r"H20\b", Peaks("H20", {"bf16": 148, "fp8": 296, "tf32": 74, "fp32": 44}, 4.0)),
    ("A100.*PCIe.*80|A100 80GB PCIe", Peaks("A100 80 GB PCIe", {"bf16": 312, "tf32": 156, "fp32": 19.5}, 1.935)),
    ("A100.*80", Peaks("A100 80 GB", {"bf16": 312, "tf32": 156, "fp32": 19.5}, 2.039)),
    ("A100", Peaks("A100 40 GB", {"bf16": 312, "tf32": 156, "fp32": 19.5}, 1.555)),
    ("L40S", Peaks("L40S", {"bf16": 362, "fp8": 733, "tf32": 183, "fp32": 91.6}, 0.864)),
    (r"L40\b", Peaks("L40", {"bf16": 181, "fp8": 362, "tf32": 90.5, "fp32": 90.5}, 0.864)),
    (r"L4\b", Peaks("L4", {"bf16": 121, "fp8": 242, "tf32": 60, "fp32": 30.3}, 0.3)),
    (r"A10\b", Peaks("A10", {"bf16": 125, "tf32": 62.5, "fp32": 31.2}, 0.6)),
    (r"RTX 4090\b", Peaks("RTX 4090", {"bf16": 165, "fp8": 330, "tf32": 82.6, "fp32": 82.6}, 1.008)),
    (r"RTX 3090\b", Peaks("RTX 3090", {"bf16": 71, "tf32": 35.6, "fp32": 35.6}, 0.936)),
    ("V100", Peaks("V100", {"fp16": 125, "fp32": 15.7}, 0.9)),
    (r"\bT4\b", Peaks("T4", {"fp16": 65, "fp32": 8.1}, 0.32)),
    ("MI300X", Peaks("MI300X", {"bf16": 1307, "fp8": 2615, "tf32": 654, "fp32": 163}, 5.3)),
)


def peaks_of(name: str) -> Peaks | None:
    """The peaks of a device by its name as the driver gives it; None for one that the table lacks."""
    return next((peaks for pattern, peaks in _TABLE if re.search(pattern, name)), None)
