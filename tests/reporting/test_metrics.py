from __future__ import annotations

import pytest

from awp_lint.detector.cli import main
from awp_lint.detector.reporting.metrics import METRICS, find, near


def test_every_metric_says_what_it_is() -> None:
    for metric in METRICS.values():
        assert metric.title and metric.unit and metric.definition.endswith(".") and metric.source
        assert bool(metric.limit) <= bool(metric.healthy), metric.name


@pytest.mark.parametrize("name", ["gap_ratio", "Gap ratio", "GAP-RATIO", "gapratio"])
def test_names_are_found_however_they_are_written(name: str) -> None:
    assert find(name) is METRICS["gap_ratio"]


def test_thresholds() -> None:
    assert METRICS["gap_ratio"].is_healthy(0.04) is True and METRICS["gap_ratio"].is_healthy(0.06) is False
    assert METRICS["memcpy_share"].is_healthy(0.02) is True
    assert METRICS["sm_active_pct"].is_healthy(61.0) is True and METRICS["sm_active_pct"].is_healthy(20.0) is False
    assert METRICS["unit_ms"].is_healthy(1.0) is None


def test_explain_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain-metric", "memcpy_share"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("memcpy_share: Copy share (share)") and "healthy  below 3 %" in shown
    assert main(["--explain-metric"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(METRICS)
    assert main(["--explain-metric", "gap"]) == 2
    assert "gap_ratio" in capsys.readouterr().err and near("zzz") == []
