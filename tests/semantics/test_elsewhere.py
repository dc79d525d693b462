"""Code of other machines, tools and plain forms: it is not told how often it runs, and what it calls is no hotter."""

from __future__ import annotations

from typing import Any

import pytest

from awp_lint.detector.semantics.elsewhere import is_plain_form, runs_elsewhere

MODEL = """
    import torch
    from torch import nn
    from {module} import check

    class Model(nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.layers = nn.ModuleList(layers)
        def forward(self, input_ids):
            for layer in self.layers:
                check(input_ids)
            return input_ids
    """
CHECK = """
    from lib.numbers import read
    def check(x):
        return read(x)
    """


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("srt/hardware_backend/npu/attention/backend.py", "Backend.forward"),
        ("layers/attention/intel_amx_backend.py", "Backend.forward"),
        ("layers/attention/vision.py", "VisionAscendAttention.forward"),
        ("layers/norm.py", "RMSNorm.forward_npu"),
        ("worker/cpu_worker.py", "Worker.run"),
        ("srt/debug_utils/tensors.py", "compare"),
        ("kernels/kernel_api_logging.py", "write"),
        ("kernels/api.py", "debug_kernel_api.decorator.wrapper"),
        ("tools/quantize_model_fp8.py", "main"),
        ("attention/torch_native_backend.py", "Backend.forward"),
        ("ops/lora.py", "_naive_align"),
        ("ops/lora.py", "attention_reference"),
        ("backends/default/norm.py", "NormImpl.forward"),
    ],
)
def test_names_of_places_that_no_gpu_serves(path: str, name: str) -> None:
    assert runs_elsewhere(path, name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("layers/attention/flash_backend.py", "Backend.forward"),
        ("layers/attention/rocm_backend.py", "RocmBackend.forward"),  # a target of its own
        ("memory/cpu_offload.py", "Offloader.load"),
        ("models/dumbo.py", "Model.forward"),
        ("input/inputs.py", "prepare_inputs"),
        ("models/attention_dispatch.py", "_native_attention"),
        ("pipelines/edit.py", "encode_reference_image"),
        ("quantization/fp8.py", "quantize"),
        ("utils/logging.py", "log"),
    ],
)
def test_names_that_only_look_like_them(path: str, name: str) -> None:
    assert not runs_elsewhere(path, name)


def test_the_plain_form_beside_a_method_a_machine() -> None:
    assert is_plain_form("RMSNorm.forward_native", {"engine.layers.custom_op.CustomOp"})
    assert not is_plain_form("Linear.forward_native", {"torch.nn.Linear"})
    assert not is_plain_form("RMSNorm.forward_cuda", {"engine.layers.custom_op.CustomOp"})


@pytest.mark.parametrize(
    ("module", "hot"),
    [("lib.checks", True), ("lib.debug_utils.checks", False)],
)
def test_what_a_tool_calls_is_no_hotter(link: Any, module: str, hot: bool) -> None:
    project = link(
        {
            "lib/__init__.py": "",
            "lib/debug_utils/__init__.py": "",
            "lib/numbers.py": "def read(x): return x.max().item()",
            "lib/model.py": MODEL.format(module=module),
            module.replace(".", "/") + ".py": CHECK,
            "app.py": """
                from lib.model import Model
                def main(ids, max_new_tokens):
                    model = Model([])
                    for _ in range(max_new_tokens):
                        ids = model(ids)
                """,
        }
    )
    found = project.frequencies.frequency(project.index.by_function["lib.numbers.read"])
    assert ("layer" in str(found)) is hot


def test_what_a_switch_for_debugging_calls_is_no_hotter(link: Any) -> None:
    project = link(
        {
            "model.py": """
                import envs
                from torch import nn
                class Model(nn.Module):
                    def forward(self, hidden_states):
                        for layer in self.layers:
                            if envs.ENGINE_DEBUG_SHARDS:
                                self.compare(hidden_states)
                            self.work(hidden_states)
                    def compare(self, x): return x
                    def work(self, x): return x
                """,
        }
    )
    assert "layer" in str(project.frequencies.frequency(project.index.by_function["model.Model.work"]))
    assert "layer" not in str(project.frequencies.frequency(project.index.by_function["model.Model.compare"]))
