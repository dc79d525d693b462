"""What is right and negligible is hidden by default; the same work where it runs often is not."""

from __future__ import annotations

import textwrap

import pytest
from judged import LAYER, found, levels

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules
from awp_lint.rules.worth import DOUBTS, counts_anywhere


def test_code_that_shows_pictures() -> None:
    read = LAYER.format(body="print(hidden_states.max().item())")
    assert ("AWP101", "medium") in found(read, "lib/attention.py")
    assert {level for rule, level in found(read, "lib/visualizer.py") if rule == "AWP101"} <= {"low"}


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


def test_rows_of_a_batch_once_a_request() -> None:
    code = """
        import torch

        class Encoder(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                longest = max(attention_mask.sum(1))
                for layer in self.layers:
                    hidden_states = layer(hidden_states) {more}
                return hidden_states[:, :longest]
    """
    inside = "+ max(attention_mask.sum(1))"
    assert {level for rule, level in found(code.replace("{more}", "")) if rule == "AWP103"} <= {"low"}
    assert "medium" in {level for rule, level in found(code.replace("{more}", inside)) if rule == "AWP103"}


@pytest.mark.parametrize(("end", "hidden"), [("stop_pool", True), ("__del__", True), ("rest", False)])
def test_a_model_that_is_moved_away_when_it_is_no_longer_needed(end: str, hidden: bool) -> None:
    code = f"""
        import torch
        from transformers import AutoModel

        class Embedder:
            def __init__(self, name: str) -> None:
                self.model = AutoModel.from_pretrained(name)

            def encode(self, texts: list, device: str) -> torch.Tensor:
                self.model.to(device)
                return self.model(texts).logits

            def {end}(self) -> None:
                self.model.to("cpu")
    """
    shown = {rule for rule, level in found(code) if level != "low"}
    assert ("AWP606" not in shown) is hidden


ARRAYS = """
    import torch

    class FrontendLayer(torch.nn.Module):
        def forward(self, waveforms: torch.Tensor, lengths: torch.Tensor) -> list:
            found = []
            for i in range(waveforms.size(0)):
                length = lengths[i]
                wave = waveforms[i][:length]
                wave = {array}
                found.append(features(wave))
            return found
"""


@pytest.mark.parametrize(
    ("array", "hidden"), [("wave.numpy()", True), ("wave.detach().numpy()", True), ("wave.cpu().numpy()", False)]
)
def test_a_tensor_that_is_turned_into_an_array_as_it_came(array: str, hidden: bool) -> None:
    shown = {rule for rule, level in found(ARRAYS.format(array=array)) if level != "low"}
    assert ("AWP104" not in shown) is hidden


@pytest.mark.parametrize(("name", "hidden"), [("BeamSearch", True), ("Decoder", False)])
def test_what_a_search_on_the_host_logs(name: str, hidden: bool) -> None:
    code = f"""
        import logging
        import torch

        class {name}(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    logging.info(f"at {{layer}}")
                    x = layer(x)
                return x
    """
    assert ("AWP402" not in {rule for rule, _ in found(code)}) is hidden


@pytest.mark.parametrize(("forward", "shown"), [("", True), ("def forward(self, x):\n                return x", False)])
def test_a_method_beside_the_forward_of_a_model_whose_base_is_not_there(forward: str, shown: bool) -> None:
    code = f"""
        import torch
        from unknown.models import BaseModel
        from transformers import AutoModel

        class Diariser(BaseModel):
            def __init__(self, name: str) -> None:
                self.encoder = AutoModel.from_pretrained(name).eval()

            {forward}

            def predict(self, x: torch.Tensor) -> torch.Tensor:
                return self.encoder(x).logits
    """
    assert ("AWP701" in {rule for rule, _ in found(code)}) is shown


GIVEN = """
    import torch

    class ScatterLayer(torch.nn.Module):
        def forward(self, x: torch.Tensor, index: torch.Tensor, size: int | None = None, depth=0) -> torch.Tensor:
            if {test}:
                {name} = int(index.max()) + 1
            return x.new_zeros({name}, x.size(1)).index_add_(0, index, x)
"""


@pytest.mark.parametrize(
    ("test", "name", "hidden"),
    [
        ("size is None", "size", True),
        ("index is not None and size is None", "size", True),
        ("size is None", "rows", False),
        ("depth > 1", "depth", False),
    ],
)
def test_a_size_that_callers_may_give(test: str, name: str, hidden: bool) -> None:
    shown = {rule for rule, level in found(GIVEN.format(test=test, name=name)) if level != "low"}
    assert ("AWP101" not in shown) is hidden


@pytest.mark.parametrize(
    ("path", "method", "hidden"),
    [
        ("lib/explain/masks.py", "attend", True),
        ("lib/explainer.py", "attend", True),
        ("lib/masks.py", "plot_interpretation", True),
        ("lib/masks.py", "attend", False),
    ],
)
def test_what_shows_how_a_model_came_to_it(path: str, method: str, hidden: bool) -> None:
    code = f"""
        import torch

        class Attention(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.{method}(x)
                return x

            def {method}(self, x: torch.Tensor) -> None:
                print(x.max().item())
    """
    assert ("AWP101" not in {rule for rule, level in found(code, path) if level != "low"}) is hidden
