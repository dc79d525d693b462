"""A detector's post-processing: frames of a clip, each with boxes to filter, count and thin out.

python detect.py --device cuda --size gpu --seconds 20
python detect.py --truth          times its own planted statements and prints JSON
"""

from __future__ import annotations

import sys

import torch
from common import Options, Served, parse, requests_for
from torch import nn

FRAMES = 8
BOXES = 512
CLASSES = 5
STAGES = 6
ROUNDS = 3
SIZES = {"cpu": 1 << 14, "gpu": 1 << 24}


class Backbone(nn.Module):
    """Two pointwise kernels a stage."""

    def __init__(self) -> None:
        super().__init__()
        self.gains = nn.ParameterList(torch.tensor(1.0 + 0.01 * stage) for stage in range(STAGES))

    def forward(self, frame: torch.Tensor) -> torch.Tensor:
        for gain in self.gains:
            frame = torch.relu(frame * gain)
        return frame


def thin_out(scores: torch.Tensor) -> int:
    """Drop the weaker half of what is left until little is left."""
    alive = torch.ones_like(scores, dtype=torch.bool)
    level = 0.0
    rounds = 0
    while alive.any():
        level += 1.0 / ROUNDS
        alive = scores > level
        rounds += 1
    return rounds


@torch.inference_mode()
def detect(backbone: Backbone, clip: torch.Tensor, base: torch.Tensor, device: torch.device) -> list[dict[str, object]]:
    results = []
    for frame in range(FRAMES):
        features = backbone(clip)
        scores = base + 0.0 * features[:BOXES]
        boxes = torch.stack((scores, scores, scores + 1.0, scores + 2.0), dim=1)
        keep = boxes[scores > 0.5]
        groups = scores.view(CLASSES - 1, -1)
        counts = [int((group > 0.25).sum()) for group in groups]
        stats = {"low": scores.amin(), "high": scores.amax(), "mean": scores.mean()}
        summary = {name: value.item() for name, value in stats.items()}
        area = sum(part.item() for part in groups.sum(dim=1))
        rows = keep.tolist()
        results.append(
            {
                "frame": frame,
                "rows": len(rows),
                "counts": counts,
                "summary": summary,
                "area": area,
                "rounds": thin_out(scores),
                "worst": int(
                    scores.argmin(),
                ),
            }
        )
    return results


def serve(options: Options) -> Served:
    device = torch.device(options.device)
    torch.manual_seed(0)
    backbone = Backbone().to(device).eval()
    clip = torch.linspace(0.0, 1.0, SIZES[options.size], device=device)
    base = torch.linspace(0.0, 0.999, BOXES, device=device)
    served = 0
    for request in requests_for(options.seconds):
        detect(backbone, clip, base, device)
        served = request + 1
    return Served(served, served * FRAMES)


def main() -> int:
    options = parse(__doc__)
    if options.truth:
        from truth import print_truth

        print_truth(__file__, options)
    elif options.around:
        from truth import measure_around

        measure_around(__file__, serve, options)
    else:
        print(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
