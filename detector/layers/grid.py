"""Batch × weights × runtime × devices: what a step would take by a model with few assumptions, all of them guesses.

The model starts from the run: time of products, of attention, of short kernels and of the rest, and the host's time.

* products read the weights: their time does not grow with the batch until a product's intensity (about 2 × batch
  FLOP for each 2 bytes) reaches the ridge point, then in proportion; 8-bit weights halve it before that point, 4-bit
  ones quarter it
* attention and the rest grow with the batch; kernels too short to fill the device do not until fourfold
* an eager host takes today's time; as one graph it takes what is not spent on launching
* two devices halve products and attention, and add a tenth for communication

A step takes the longer of device and host.
"""

from __future__ import annotations

from dataclasses import dataclass

from awp_lint.detector.layers.signals import Signals

BATCHES = (1, 2, 4, 8, 16)
WEIGHTS = (("as they are", 1.0), ("8 bits", 0.5), ("4 bits", 0.25))
DEVICES = (1, 2)


@dataclass(frozen=True, slots=True)
class Guess:
    """One combination; ``step_ms`` and ``throughput`` (a device, against today) are guesses."""

    batch: int  # times today's
    weights: str
    runtime: str  # as it is, graphs
    devices: int
    step_ms: float
    throughput: float


def guesses(s: Signals, ridge: float | None) -> list[Guess]:
    """Today's combination, the best single change of each kind, and what several together promise beyond them.

    More changes are shown only where they promise a tenth more than fewer. Empty where the kernels are not known, or
    steps are not told apart.
    """
    if s.unit == "run" or s.weights_ms <= 0 or ridge is None:
        return []
    found = [
        Guess(batch, weights, runtime, devices, step, batch * s.unit_ms / step / devices)
        for batch in BATCHES
        for weights, share in WEIGHTS
        for runtime in ("as it is", "graphs")
        for devices in DEVICES
        if (step := _step(s, ridge, batch, share, runtime == "graphs", devices)) > 0
    ]
    shown = [next(g for g in found if not _changes(g))]
    for kind in ("batch", "weights", "runtime", "devices"):
        single = [g for g in found if _changes(g) == 1 and getattr(g, kind) != getattr(shown[0], kind)]
        shown += sorted(single, key=lambda g: -g.throughput)[:1]
    for count in (2, 3, 4):
        best = max((g for g in found if _changes(g) == count), key=lambda g: g.throughput)
        if best.throughput >= 1.1 * max(g.throughput for g in shown):
            shown.append(best)
    return shown


def _changes(g: Guess) -> int:
    return (g.batch != 1) + (g.weights != WEIGHTS[0][0]) + (g.runtime == "graphs") + (g.devices != 1)


def _step(s: Signals, ridge: float, batch: int, weights: float, graphs: bool, devices: int) -> float:
    bytes_bound = s.weights_ms * weights
    arithmetic = s.weights_ms * batch / ridge  # at the ridge point both take equally long
    products = max(bytes_bound, arithmetic)
    short = s.latency_ms * max(1.0, batch / 4)
    device = (products + s.attention_ms * batch) / devices + short + s.other_ms * batch
    device += s.communication_ms + (0.1 * s.weights_ms if devices > 1 else 0.0)
    host = s.unit_ms if s.gap >= 0.05 else 0.0
    if graphs:
        host = max(host - s.launch_idle * s.unit_ms - s.busy_ms, 0.0)
    return max(device, host)
