"""What is on the host anyway, or moved once and by plan, is hidden by default."""

from __future__ import annotations

import textwrap

import pytest
from judged import LAYER, found, levels

from awp_lint.detector.finding import Frame
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.common import prepares_on_host, through_host


def test_an_attribute_that_stays_where_it_was_moved() -> None:
    moved = "self.table = self.table.to(hidden_states.device)"
    again = "table = torch.arange(8).to(hidden_states.device)"
    assert not {rule for rule, level in found(LAYER.format(body=moved)) if level != "low"} & {
        "AWP602",
        "AWP603",
        "AWP606",
    }
    assert ("AWP602", "medium") in found(LAYER.format(body=again))


def test_the_branch_of_another_device() -> None:
    read = "if hidden_states.device.type {op} 'cuda':\n                print(hidden_states.max().item())"
    assert {level for rule, level in found(LAYER.format(body=read.format(op="=="))) if rule == "AWP101"} == {"medium"}
    assert {level for rule, level in found(LAYER.format(body=read.format(op="!="))) if rule == "AWP101"} <= {"low"}


def test_a_container_is_not_the_tensor_that_its_name_tells_of() -> None:
    code = """
        import torch

        class AttentionBlock(torch.nn.Module):
            def forward(self, hidden_states, slot_mapping: {declared} = None):
                return hidden_states + 1 if {asked} else hidden_states
    """
    held = code.format(declared="dict[str, torch.Tensor] | list[torch.Tensor] | None", asked="slot_mapping")
    assert "AWP102" not in {rule for rule, _ in found(held)}
    bare = code.format(declared="torch.Tensor | None", asked="(slot_mapping > 0).any()")
    assert ("AWP102", "medium") in found(bare)


def test_inputs_that_a_server_keeps_on_the_host() -> None:
    code = """
        import torch

        class Model(torch.nn.Module):
            def fields(self, inputs):
                return dict(
                    image_sizes=MultiModalFieldConfig.batched("image"{kept}),
                    pixel_values=MultiModalFieldConfig.flat_from_sizes("image", sizes(inputs), keep_on_cpu=True),
                )

            def forward(self, hidden_states: torch.Tensor, image_sizes: torch.Tensor) -> torch.Tensor:
                heights = image_sizes[:, 0]
                for height in heights:
                    hidden_states = hidden_states[:, : int(height)]
                return hidden_states
    """
    for path, kept, expected in (
        ("vllm/model.py", "", {"medium"}),
        ("vllm/model.py", ", keep_on_cpu=True", {"low"}),
        ("mine/model.py", ", keep_on_cpu=True", {"medium"}),
    ):
        levels = {level for rule, level in found(code.format(kept=kept), path) if rule in ("AWP101", "AWP104")}
        assert levels == expected, (path, kept)


@pytest.mark.parametrize(("imported", "expected"), [("transformers", "medium"), ("sglang.layers", "low")])
def test_sizes_of_images_that_a_serving_engine_makes_on_the_host(imported: str, expected: str) -> None:
    code = f"""
        import torch
        from {imported} import Block

        class VisionModel(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    for t, h, w in grid_thw:
                        hidden_states = hidden_states + torch.arange(h, device=hidden_states.device).sum()
                return hidden_states
    """
    assert {level for rule, level in found(code, "models/vision.py") if rule == "AWP104"} == {expected}


def test_weights_that_are_moved_away_by_plan() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                hidden_states = self.work(hidden_states)
                if self.{switch}:
                    torch.cuda.empty_cache()
                return hidden_states
    """
    assert levels(code.format(switch="cleans"), "AWP605") == {"medium"}
    assert levels(code.format(switch="layerwise_offload"), "AWP605") <= {"low"}


def test_a_processor_of_a_serving_engine() -> None:
    code = LAYER.format(body="print(hidden_states.max().item())")
    assert {level for rule, level in found(code, "multimodal/layers/qwen.py") if rule == "AWP101"} == {"medium"}
    assert {level for rule, level in found(code, "multimodal/processors/qwen.py") if rule == "AWP101"} <= {"low"}
    assert through_host(Frame("p.py", 1, "BailingMultimodalProcessor.process"))
    assert not through_host(Frame("p.py", 1, "PerceiverImagePreprocessor.forward"))


def test_values_of_a_dictionary_of_several_types() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, layout: dict[str, {kinds}]) -> torch.Tensor:
                return hidden_states[: int(layout["stop"])]
    """
    assert levels(code.format(kinds="torch.Tensor"), "AWP101") == {"medium"}
    assert not levels(code.format(kinds="torch.Tensor | int"), "AWP101") - {"low"}
    assert not levels(code.format(kinds="Union[torch.Tensor, int]"), "AWP101") - {"low"}


def test_what_an_object_keeps_of_itself() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, source) -> torch.Tensor:
                longest = {found}
                if longest is None:
                    longest = hidden_states.max().item()
                    source._longest = longest
                return hidden_states * longest
    """
    for given in ('getattr(source, "_longest", None)', "source._longest"):
        assert not levels(code.format(found=given), "AWP101") - {"low"}
    assert levels(code.format(found="source.other()"), "AWP101") == {"medium"}


def test_the_pictures_of_a_request_are_uploaded_once() -> None:
    code = """
        import numpy as np
        import torch

        class Model(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, {name}: list) -> torch.Tensor:
                for layer in self.layers:
                    hidden_states = layer(hidden_states, torch.tensor({name}, device=hidden_states.device))
                return hidden_states
    """
    assert levels(code.format(name="pixel_values"), "AWP601") <= {"low"}
    assert levels(code.format(name="offsets"), "AWP601") == {"medium"}


def test_a_name_that_tells_of_the_host() -> None:
    code = """
        import torch
        from dataclasses import dataclass

        @dataclass
        class Meta:
            seq_lens: torch.Tensor
            seq_lens_cpu_upper_bound: torch.Tensor

            def get_lengths_cpu(self) -> torch.Tensor:
                return self.lengths

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, meta: Meta) -> torch.Tensor:
                lengths = meta.{name}
                print((lengths + 1).max().item())
                return hidden_states
    """
    for name, expected in (("seq_lens", True), ("seq_lens_cpu_upper_bound", False), ("get_lengths_cpu()", False)):
        assert (("AWP101", "medium") in found(code.format(name=name))) is expected, name


def test_a_pipeline_gets_its_results_on_the_host() -> None:
    code = """
        import torch
        from transformers import Pipeline

        class Detection(Pipeline):
            def postprocess(self, outputs): ...
            def _forward(self, outputs): ...
        class Other(torch.nn.Module):
            def postprocess(self, outputs): ...
    """
    views = view_of_source(textwrap.dedent(code)).functions()
    assert {view.qualname for view in views if prepares_on_host(view)} == {"Detection.postprocess"}


def test_a_name_of_several_types() -> None:
    code = """
        import torch

        class AttentionBlock(torch.nn.Module):
            def forward(self, hidden_states, attention_mask):
                return hidden_states + 1 if attention_mask{asked} else hidden_states
    """
    assert "AWP102" in {rule for rule, _ in found(code.format(asked=""))}
    assert "AWP102" not in {rule for rule, _ in found(code.format(asked=" and isinstance(attention_mask, list)"))}


def test_classes_of_the_host() -> None:
    def host(function: str) -> bool:
        return through_host(Frame("server.py", 1, function))

    assert (
        host("PunicaWrapperCPU.add_expand") and host("CPUModelRunner.step") and host("VisionImageProcessor._preprocess")
    )
    assert not host("CpuGpuBuffer.copy") and not host("GPUModelRunner.step") and not host("CPUGPUBuffer.copy")


def test_an_object_that_is_copied_to_the_host_as_a_whole() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def __init__(self, size: int) -> None:
                super().__init__()
                self.register_buffer("scores", torch.zeros(size))

            def forward(self, hidden_states: torch.Tensor) -> list:
                return self.scores.tolist()

            def {other}(self) -> "Attention":
                return self
    """
    assert levels(code.format(other="halved"), "AWP101") == {"medium"}
    assert levels(code.format(other="to_cpu_nonblocking"), "AWP101") <= {"low"}


def test_a_branch_of_another_kind_of_machine() -> None:
    layer = """
        import torch
        from engine import current_platform

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                if current_platform.{asked}():
                    return hidden_states * hidden_states.max().item()
                return hidden_states
    """
    assert levels(layer.format(asked="is_cuda_alike"), "AWP101") == {"medium"}
    assert levels(layer.format(asked="is_rocm"), "AWP101") <= {"low"}


def test_a_part_that_stays_where_it_was_moved() -> None:
    code = """
        import torch

        class Server:
            def __init__(self) -> None:
                self.model = torch.nn.Linear(8, 8)

            def predict(self, hidden_states: torch.Tensor) -> torch.Tensor:
                self.model.to("cuda")
                return self.model(hidden_states)

            def rest(self) -> None:
                {rest}
    """
    assert levels(code.format(rest='self.model.to("cpu")'), "AWP606") == {"medium"}
    assert levels(code.format(rest="pass"), "AWP606") <= {"low"}


def test_bytes_are_made_on_the_host() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> {given}:
                return hidden_states.cpu().numpy().data
    """
    assert levels(code.format(given="torch.Tensor"), "AWP101") == {"medium"}
    assert levels(code.format(given="memoryview"), "AWP101") <= {"low"}
    assert levels(code.format(given="np.ndarray"), "AWP101") <= {"low"}
    assert levels(code.format(given="list[np.ndarray]"), "AWP101") == {"medium"}


def test_lengths_of_packed_sequences_are_on_the_host() -> None:
    code = """
        import torch

        class TaggerLayer(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, lengths: list) -> torch.Tensor:
                packed = torch.nn.utils.rnn.pack_padded_sequence(hidden_states, lengths)
                out, _ = torch.nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0])
                return out
    """
    assert "AWP110" not in {rule for rule, _ in found(code)}


LOADED = """
    from fastapi import FastAPI
    from transformers import AutoModel

    app = FastAPI()

    def load_align(language):
        return AutoModel.from_pretrained(language), {{"language": language}}

    @app.post("/align")
    def align(text: str, language: str):
        model, meta = app.state.model, app.state.meta
        if {test}:
            {loads}
        return model(text)
"""


@pytest.mark.parametrize(
    ("test", "loads", "shown"),
    [
        ('language != meta["language"]', "model, meta = load_align(language)", False),
        ('meta["language"] != language', "model, meta = load_align(language)", False),
        ("text", "model, meta = load_align(language)", True),
        ('language != meta["language"]', "model, other = load_align(language)", True),
    ],
)
def test_a_model_that_is_loaded_for_another_language(test: str, loads: str, shown: bool) -> None:
    assert ("AWP802" in {rule for rule, _ in found(LOADED.format(test=test, loads=loads))}) is shown
