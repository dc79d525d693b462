"""What is right and negligible is hidden by default; the same work where it runs often is not."""

from __future__ import annotations

import textwrap

import pytest

from awp_lint.detector.finding import Frame
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.common import prepares_on_host, through_host
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules
from awp_lint.rules.worth import DOUBTS, counts_anywhere


def found(code: str, path: str = "code.py") -> set[tuple[str, str]]:
    """Rules and confidences of a text's findings."""
    view = view_of_source(textwrap.dedent(code), path=path)
    return {(f.rule, f.confidence.value) for f in run_rules(view, all_rules()).findings}


LAYER = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            {body}
            return hidden_states
"""


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


def test_code_that_shows_pictures() -> None:
    read = LAYER.format(body="print(hidden_states.max().item())")
    assert ("AWP101", "medium") in found(read, "lib/attention.py")
    assert {level for rule, level in found(read, "lib/visualizer.py") if rule == "AWP101"} <= {"low"}


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


def test_the_plain_form_beside_a_kernel_by_name() -> None:
    code = """
        import torch

        def positions_torch(hidden_states: torch.Tensor, layers: torch.nn.ModuleList) -> torch.Tensor:
            for layer in layers:
                hidden_states = layer(hidden_states.cuda() * hidden_states.cuda().max().item())
            return hidden_states

        def positions_{other}(hidden_states): ...
    """
    assert levels(code.format(other="triton"), "AWP101") <= {"low"}
    assert levels(code.format(other="mrope"), "AWP101") & {"medium", "high"}


def test_what_is_done_where_a_kernel_declined() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                out = {made}(hidden_states)
                if out is None:
                    out = hidden_states * hidden_states.max().item()
                return out
    """
    assert levels(code.format(made="try_fused_attention"), "AWP101") <= {"low"}
    assert levels(code.format(made="look_up"), "AWP101") == {"medium"}


def test_a_block_that_asks_for_its_precision() -> None:
    code = """
        import contextlib
        import torch

        class Attention(torch.nn.Module):
            {decorated}
            def forward(self, hidden_states: torch.Tensor):
                torch.backends.cuda.matmul.allow_tf32 = False
                yield hidden_states @ hidden_states
    """
    assert levels(code.format(decorated="@contextlib.contextmanager"), "AWP703") <= {"low"}
    assert levels(code.format(decorated=""), "AWP703") == {"medium"}


def test_a_norm_behind_its_kernel() -> None:
    code = """
        import torch

        class RMSNorm(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                if {asked}:
                    return {given}
                x = hidden_states.float()
                x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
                return self.weight * x.to(hidden_states.dtype)
    """
    for asked in ("hidden_states.is_cuda and self.group", "_fused_ok(hidden_states)"):
        assert levels(code.format(asked=asked, given="fused_norm(hidden_states)"), "AWP302") <= {"low"}
    assert levels(code.format(asked="self.off", given="hidden_states"), "AWP302") == {"medium"}


def test_a_copy_that_nobody_waits_for() -> None:
    read = "self.kept.append(hidden_states{})"
    assert ("AWP101", "medium") in found(LAYER.format(body=read.format(".to('cpu')")))
    assert "AWP101" not in {rule for rule, _ in found(LAYER.format(body=read.format(".to('cpu', non_blocking=True)")))}


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


def test_beside_a_whole_denoising_loop() -> None:
    code = """
        import torch
        from diffusers import {base}

        class VideoPipeline({base}):
            def __call__(self, prompts, latents: torch.Tensor, timesteps):
                sizes = []
                for prompt in prompts:
                    latents = self.vae(latents)
                    {before}
                for t in timesteps:
                    latents = self.unet(latents, t)
                    {within}
                return latents, sizes
    """
    read = "sizes.append(latents.max().item())"

    def levels(**code_of: str) -> set[str]:
        return {level for rule, level in found(code.format(**code_of)) if rule == "AWP101"}

    assert levels(before="pass", within=read, base="DiffusionPipeline") == {"medium"}
    assert levels(before=read, within="pass", base="DiffusionPipeline") <= {"low"}


def test_classes_of_the_host() -> None:
    def host(function: str) -> bool:
        return through_host(Frame("server.py", 1, function))

    assert (
        host("PunicaWrapperCPU.add_expand") and host("CPUModelRunner.step") and host("VisionImageProcessor._preprocess")
    )
    assert not host("CpuGpuBuffer.copy") and not host("GPUModelRunner.step") and not host("CPUGPUBuffer.copy")


def levels(code: str, rule: str) -> set[str]:
    return {level for name, level in found(code) if name == rule}


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


def test_the_truth_of_what_may_be_missing() -> None:
    layer = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, flag: torch.Tensor{default}) -> torch.Tensor:
                return hidden_states + 1 if flag else hidden_states
    """
    assert levels(layer.format(default=""), "AWP102") == {"medium"}
    assert levels(layer.format(default=" = None"), "AWP102") <= {"low"}


def test_what_follows_the_end_of_a_sequence() -> None:
    layer = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, ends: list[bool]) -> list:
                found = []
                for row, {name} in enumerate(ends):
                    if not {name}:
                        continue
                    found.append(hidden_states[row].max().item())
                return found
    """
    assert levels(layer.format(name="chosen"), "AWP101") == {"medium"}
    assert levels(layer.format(name="eos_found"), "AWP101") <= {"low"}


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


def test_rows_of_a_batch_beside_a_step() -> None:
    code = """
        import torch

        class {name}(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                rows = []
                for row in hidden_states:
                    rows.append(torch.relu(row) * 2)
                return torch.stack(rows)
    """
    assert levels(code.format(name="Attention"), "AWP203") == {"medium"}
    assert levels(code.format(name="UNet2D"), "AWP203") <= {"low"}


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


def test_the_plain_form_of_an_operator_with_kernels() -> None:
    code = """
        import torch

        class Rotary(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return self.forward_native(hidden_states)

            def forward_native(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return hidden_states * hidden_states.max().item()
    """

    def there(path: str) -> set[str]:
        return {level for rule, level in found(code, path) if rule == "AWP101"}

    assert there("lib/layers/rotary.py") == {"medium"}
    assert there("vllm/layers/rotary.py") <= {"low"}


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


def test_a_number_that_is_read_after_the_device_was_waited_for() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
                {statement}
                return hidden_states
        """
    beside = code.format(statement="self.kept[timestep.item()] = hidden_states.cpu()")
    alone = code.format(statement="self.kept[timestep.item()] = hidden_states")
    assert [level for rule, level in found(alone) if rule in ("AWP101", "AWP108")] == ["medium"]
    view = view_of_source(textwrap.dedent(beside))
    kept = [f for f in run_rules(view, all_rules()).findings if f.confidence.value == "medium" and f.rule < "AWP2"]
    assert [f.message for f in kept if "timestep.item()" in f.message] == []
    assert len(kept) == 1


def test_one_read_an_image_before_all_tokens() -> None:
    code = """
        import torch
        from transformers import GenerationMixin, PreTrainedModel

        class ToyModel(PreTrainedModel{mixin}):
            def forward(self, input_ids: torch.Tensor, pixel_values=None, sizes: torch.Tensor | None = None):
                if pixel_values is not None:
                    input_ids = input_ids + self.features(pixel_values, sizes)
                return self.lm(input_ids)

            def features(self, pixel_values: torch.Tensor, sizes: torch.Tensor):
                return [image[: int(size[0])] for image, size in zip(pixel_values, sizes)]
        """
    assert levels(code.format(mixin=", GenerationMixin"), "AWP101") == {"low"}
    assert levels(code.format(mixin=""), "AWP101") == {"medium"}


def test_one_compaction_an_item() -> None:
    code = """
        import torch

        class Detector:
            def predict(self, images: list) -> list:
                kept = []
                for image in images:
                    boxes = self.find(image)
                    kept.append(boxes[boxes[:, 0] > 0.5])
                return kept

            def find(self, image: torch.Tensor) -> torch.Tensor:
                return image.cuda() * 2
    """
    assert levels(code, "AWP105") <= {"low"}


def test_the_truth_of_a_number_that_a_bound_reads_anyway() -> None:
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, sizes: torch.Tensor) -> list:
                return [list(range({first}, size, 2)) for size in sizes.to("cuda")]
        """
    findings = run_rules(
        view_of_source(textwrap.dedent(code.format(first="1 if size > 1 else 0"))), all_rules()
    ).findings
    assert [(f.rule, f.also) for f in findings if f.rule in ("AWP102", "AWP104")] == [("AWP104", ("AWP102",))]


def test_each_kind_has_a_name_of_its_own_and_a_reason_of_one_line() -> None:
    names = [item.name for item in DOUBTS.doubts]
    assert len(names) == len(set(names)) > 20
    for item in DOUBTS.doubts:
        assert 20 < len(item.reason) < 120 and item.reason.endswith("."), item.name
        assert any(item.rules.fullmatch(rule.id) for rule in all_rules()), item.name


def test_caches_are_flushed_where_requests_never_come() -> None:
    assert [rule.id for rule in all_rules() if counts_anywhere(rule.id)] == ["AWP605"]


RESULTS = """
    import torch

    class Predictor:
        def __init__(self, model: torch.nn.Module) -> None:
            self.model = model

        def predict(self, images: list, marks: torch.Tensor | None = None) -> list:
            told = []
            for image in images:
                depth = self.model(image.to("cuda"))
                {body}
            return told

        def verbose(self, depth: torch.Tensor) -> str:
            {told}
"""


@pytest.mark.parametrize(
    ("test", "expected"), [("marks is not None", "low"), ("image is not None", "medium"), ("self.model", "medium")]
)
def test_one_wait_an_item_for_an_input_that_may_be_left_out(test: str, expected: str) -> None:
    body = f"if {test}:\n                    told.append(1 if depth.sum() == 0 else 0)"
    code = RESULTS.format(body=body, told="return str(depth)")
    assert {level for rule, level in found(code) if rule == "AWP102"} == {expected}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("return f'depth {float(depth.min()):.2f}'", {"low"}),
        ("least = float(depth.min())\n            return str(least)", {"medium"}),
    ],
)
def test_a_number_of_a_text_for_people(told: str, expected: set[str]) -> None:
    body = "for name in self.names:\n                    told.append(self.verbose(depth))"
    code = RESULTS.format(body=body, told=told)
    assert {level for rule, level in found(code) if rule == "AWP101"} == expected


def test_the_noise_of_a_step() -> None:
    code = """
        import torch

        class ToyPipeline:
            def __init__(self, unet: torch.nn.Module, scheduler):
                self.unet = unet
                self.scheduler = scheduler

            @torch.no_grad()
            def __call__(self, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
                for t in timesteps:
                    sigma = {table}
                    if sigma > {bound}:
                        noise = latents / sigma
                    else:
                        noise = torch.tensor([0.0]).to(latents.device)
                    latents = self.unet(latents + noise, t)
                return latents
        """
    kept = found(code.format(table="self.scheduler.sigmas[t]", bound="0.0"))
    assert {rule for rule, level in kept if level != "low"}.isdisjoint({"AWP102", "AWP601", "AWP603"})
    other = found(code.format(table="latents.mean()", bound="0.5"))
    assert {("AWP102", "medium"), ("AWP601", "medium")} <= other


@pytest.mark.parametrize(("called", "expected"), [("F.rms_norm", {"low"}), ("self.scaled", {"medium"})])
def test_a_norm_in_the_branch_of_versions_without_the_fused_one(called: str, expected: set[str]) -> None:
    code = f"""
        import torch
        import torch.nn.functional as F

        class NormLayer(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if self.native:
                    x = {called}(x, (x.shape[-1],), self.weight)
                else:
                    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
                return x
    """
    assert {level for rule, level in found(code) if rule == "AWP302"} == expected


MORE = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor, {parameter}={default}) -> torch.Tensor:
            if {parameter}:
                print(hidden_states.max().item())
            return hidden_states
"""


@pytest.mark.parametrize(
    ("parameter", "default", "hidden"),
    [
        ("return_scores", "False", True),
        ("output_scores", "False", True),
        ("return_scores", "True", False),
        ("sorted_scores", "False", False),
    ],
)
def test_more_than_the_usual_result(parameter: str, default: str, hidden: bool) -> None:
    shown = {rule for rule, level in found(MORE.format(parameter=parameter, default=default)) if level != "low"}
    assert ("AWP101" not in shown) is hidden


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
