"""Numbers and names that lead nowhere: what no float holds, what has no end, what leads back to itself."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Finding
from awp_lint.detector.scan import scan
from awp_lint.rules.numbers import real, whole


def findings_of(folder: Path, name: str, text: str) -> list[Finding]:
    """The findings of a file, about which the scan has nothing to complain."""
    (folder / name).write_text(textwrap.dedent(text))
    result = scan([str(folder / name)], Settings(confidence=Confidence.LOW, jobs=1, cache=False))
    assert result.problems == ()
    return list(result.findings)


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("nan"), True, "1", None, 1j])
def test_what_is_no_real_number(value: object) -> None:
    assert real(value) is None


def test_real_and_whole_numbers() -> None:
    assert (real(3), real(-0.5)) == (3.0, -0.5)
    assert (whole("0"), whole("128")) == (0, 128)
    assert [whole(text) for text in ("", "-1", "1.5", "²", "9" * 5000)] == [None] * 5


@pytest.mark.parametrize(
    "formula",
    [
        f"x * {10**400}",
        f"x * {'1e308 * 1e308'} + 0.044715 * x ** 3",
        "0.5 * x * (1 + torch.tanh(0.8 * (x + x ** (1e200 * 1e200))))",
        "x / torch.sqrt(x.pow(1e400).mean(-1, keepdim=True) + 1e-6)",
        " + ".join(["x"] * 200),
        f"x.transpose(1, {10**400}).flatten().transpose(1, 1e400)",
    ],
)
def test_formulas_with_numbers_that_no_float_holds(tmp_path: Path, formula: str) -> None:
    findings_of(
        tmp_path,
        "serve.py",
        f"""\
        import torch
        from torch import nn


        class Block(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = {formula}
                return {formula} + y
        """,
    )


def test_settings_with_numbers_that_no_float_holds(tmp_path: Path) -> None:
    digits = "9" * 5000
    findings_of(
        tmp_path,
        "start.sh",
        f"""\
        export CUDA_VISIBLE_DEVICES=0,1,2,3 OMP_NUM_THREADS={digits}
        vllm serve m --tensor-parallel-size inf --max-num-seqs nan --block-size 1e999
        vllm serve m --tensor-parallel-size {digits}
        uvicorn app:app --workers inf
        """,
    )
    findings_of(
        tmp_path,
        "deployment.yaml",
        f"""\
        spec:
          containers:
          - image: vllm/vllm-openai:v0.9.0
            args: ["--model", "m", "--tensor-parallel-size", "{digits}"]
            env: [{{name: OMP_NUM_THREADS, value: "²"}}]
            resources: {{limits: {{nvidia.com/gpu: "²", cpu: nan}}}}
          - image: app
            command: [uvicorn, "app:app", --workers, "{digits}"]
            resources: {{limits: {{nvidia.com/gpu: "{digits}", cpu: infm}}}}
        """,
    )
    findings_of(
        tmp_path,
        "serve.py",
        f"""\
        import os
        import torch
        import uvicorn
        from vllm import LLM

        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
        torch.set_num_threads({digits[:4000]})
        llm = LLM(model="m", tensor_parallel_size={10**400}, max_num_seqs=1e400)
        uvicorn.run("app:app", workers=8)
        """,
    )


@pytest.mark.parametrize("later", ["flag", "flag if torch.all(x > 1) else other"])
def test_a_name_that_leads_back_to_itself(tmp_path: Path, later: str) -> None:
    found = findings_of(
        tmp_path,
        "serve.py",
        f"""\
        import torch
        from torch import nn


        class Block(nn.Module):
            def forward(self, x: torch.Tensor, sizes: list[int]) -> torch.Tensor:
                flag = torch.all(x == 0)
                other = torch.any(x == 0)
                for j in range(len(sizes)):
                    flag = flag and torch.all(x[j] == 0)
                    other = {later}
                if flag:
                    x = x * 2
                return x
        """,
    )
    assert any(finding.rule == "AWP102" for finding in found)


def test_names_bound_again_and_again_take_no_longer_each(tmp_path: Path) -> None:
    began = time.process_time()
    findings_of(
        tmp_path,
        "serve.py",
        f"""\
        import torch


        @torch.inference_mode()
        def generate(model, tokens: torch.Tensor) -> torch.Tensor:
            mask = torch.zeros(3)
            for _ in range(100):
                {"mask = mask + mask; other = mask * 2; mask = other - mask; " * 60}
                tokens = model(tokens, mask.to(tokens.device))
            return tokens
        """,
    )
    assert time.process_time() - began < 10  # seconds; asked to the power of four it took days
