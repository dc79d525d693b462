"""What surrounds a statement."""

from __future__ import annotations

import ast
import textwrap

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.regions import file_regions
from awp_lint.detector.semantics.view import Region


def around(source: str, call: str = "here()", path: str = "x.py") -> Region:
    """The regions of the one call ``here()``."""
    for view in view_of_source(textwrap.dedent(source), path).functions():
        for node in view.nodes(ast.Call):
            if ast.unparse(node) == call:
                return view.regions(node)
    raise AssertionError("no such call")


HANDED = "def f(x, kwargs):\n    if x and (n := {value}) is not None:\n        return n\n    here()"
GPU = "import torch\ndef f(x, w, y):\n    if {test}:\n        pass\n    else:\n        here()"

LEFT = "def f(self, x):\n    if {test}:\n        return {called}(x)\n    here()"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\nwith torch.no_grad():\n    here()", Region.INFERENCE),
        ("import torch as t\n@t.inference_mode()\ndef f():\n    here()", Region.INFERENCE),
        ("from torch import no_grad\n@no_grad()\ndef f():\n    def g():\n        here()", Region.INFERENCE),
        ("import torch\nwith torch.set_grad_enabled(False):\n    here()", Region.INFERENCE),
        ("import torch\nwith torch.set_grad_enabled(train):\n    here()", Region.NONE),
        ("import torch\n@torch.compile\ndef f():\n    here()", Region.COMPILED),
        ("import functools, torch\n@functools.partial(torch.compile, mode='x')\ndef f():\n    here()", Region.COMPILED),
        ("import torch\nwith torch.cuda.graph(g):\n    here()", Region.CAPTURED),
        ("def test_it():\n    here()", Region.TEST),
        ("def training_step(self):\n    here()", Region.TRAINING),
        ("def f(self):\n    loss.backward()\n    here()", Region.TRAINING),
        ("def f(self):\n    if self.training:\n        here()", Region.TRAINING),
        ("def f(self):\n    if not self.training:\n        pass\n    else:\n        here()", Region.TRAINING),
        ("def f(self):\n    if self.training and x:\n        here()", Region.TRAINING),
        ("def f(self):\n    if self.training or x:\n        here()", Region.NONE),
        ("def f(labels):\n    if labels is not None:\n        here()", Region.TRAINING),
        ("def f(x):\n    assert here()", Region.DEBUG),
        ("def f(x):\n    if logger.isEnabledFor(10):\n        here()", Region.DEBUG),
        ("def f(x):\n    if torch.jit.is_tracing():\n        here()", Region.EXPORT),
        ("def f(x):\n    if x:\n        here()\n        raise ValueError", Region.ERROR),
        ("def f(x):\n    raise ValueError(here())", Region.ERROR),
        ("def f(x):\n    try:\n        pass\n    except KeyError:\n        here()", Region.FALLBACK),
        ("def f(self):\n    if self.config._attn_implementation == 'eager':\n        here()", Region.FALLBACK),
        ("def f(x, attn_metadata=None):\n    if attn_metadata is None:\n        here()", Region.FALLBACK),
        ("def f(x, attn_metadata=None):\n    if attn_metadata is not None:\n        here()", Region.NONE),
        ("def f(self):\n    x = 1 if self.graph_buffers is not None else here()", Region.FALLBACK),
        ("def f(self, buffer=None):\n    if buffer is None:\n        here()", Region.NONE),
        ("def f(x):\n    if use_torchvision:\n        pass\n    else:\n        here()", Region.FALLBACK),
        ("def f(x):\n    if use_triton:\n        pass\n    else:\n        here()", Region.NONE),
        ("def f(x):\n    if is_triton_available():\n        here()", Region.NONE),
        ("import torch\ndef f(x):\n    if torch.is_grad_enabled() and x:\n        here()", Region.TRAINING),
        ("def f(self):\n    if self.gradient_checkpointing:\n        here()", Region.TRAINING),
        (GPU.format(test="x.is_cuda and x.dtype == w.dtype and not torch.is_grad_enabled()"), Region.FALLBACK),
        (GPU.format(test="x.is_cuda and is_torch_greater_or_equal('2.8')"), Region.FALLBACK),
        (GPU.format(test="x.is_cuda and y"), Region.NONE),
        (GPU.format(test="self.flash is not None and x.device.type == 'cuda'"), Region.FALLBACK),
        (GPU.format(test="self.cache is not None and x.device.type == 'cuda'"), Region.NONE),
        (LEFT.format(test="x.device.type == 'cuda' and x.dtype in KNOWN", called="self.refine_cuda"), Region.FALLBACK),
        (LEFT.format(test="x.device.type == 'cuda' and x.dtype in KNOWN", called="self.refine"), Region.NONE),
        (LEFT.format(test="x.dtype in KNOWN", called="self.refine_cuda"), Region.NONE),
        (LEFT.format(test="not self.training or self.prob == 0.0", called="tuple"), Region.TRAINING),
        (LEFT.format(test="self.training or self.prob == 0.0", called="tuple"), Region.NONE),
        ("def f(x):\n    if not x.is_cuda:\n        here()", Region.FALLBACK),
        ("def f(x):\n    if not platform.is_cuda():\n        here()", Region.NONE),
        (
            "def f(x):\n    if y:\n        if x.device.type != 'cpu':\n            return None\n        here()",
            Region.FALLBACK,
        ),
        ("def f(x):\n    if not is_pin_memory_available(x.device):\n        here()", Region.FALLBACK),
        ("import helion\n@helion.kernel(static_shapes=False)\ndef f(x):\n    here()", Region.EXPORT),
        ("def f(x, in_capture):\n    lens = here() if in_capture else x", Region.FALLBACK),
        ("def f(x, in_capture):\n    lens = x if in_capture else here()", Region.NONE),
        ("def f():\n    if torch.cuda.is_current_stream_capturing():\n        here()", Region.FALLBACK),
        ("def f(lens, lens_cpu):\n    if lens_cpu is None:\n        here()", Region.FALLBACK),
        ("def f(lens, lens_cpu):\n    if lens_cpu is not None:\n        here()", Region.NONE),
        ("def f():\n    if envs.ENGINE_TRACE_LOGITS.get():\n        here()", Region.DEBUG),
        ("def f():\n    if table.get():\n        here()", Region.NONE),
        ("def f(order):\n    if order == 2:\n        pass\n    else:\n        here()", Region.FALLBACK),
        ("def f(order):\n    if order == 2:\n        here()", Region.NONE),
        ("def f(order):\n    if order == 1:\n        pass\n    else:\n        here()", Region.NONE),
        (HANDED.format(value="kwargs.pop('n', None)"), Region.FALLBACK),
        (HANDED.format(value="table.pop('n', None)"), Region.NONE),
        ("def f(x, mask=None):\n    x = mask.flatten()\n    if mask is None:\n        here()", Region.FALLBACK),
        (
            "def f(x, mask=None):\n    x = mask[0]\n    if mask is not None:\n        x()\n    else:\n        here()",
            Region.FALLBACK,
        ),
        ("def f(x, mask=None):\n    x = mask and mask.flatten()\n    if mask is None:\n        here()", Region.NONE),
        ("def f(x, mask=None):\n    if x:\n        mask.flatten()\n    if mask is None:\n        here()", Region.NONE),
        (
            "def f(x, mask=None):\n    if x:\n        return x\n    x = mask[0]\n    if mask is None:\n        here()",
            Region.NONE,
        ),
        ("def f(x, mask):\n    x = mask[0]\n    mask = g()\n    if mask is None:\n        here()", Region.NONE),
        (GPU.format(test="x.dtype == w.dtype and is_torch_available()"), Region.NONE),
        ("def f(x):\n    if x.shape[0] == 0:\n        here()", Region.FALLBACK),
        ("def f(x):\n    if x.numel() > 0:\n        pass\n    else:\n        here()", Region.FALLBACK),
        ("def f(x):\n    if x.size(1) != 0:\n        here()", Region.NONE),
        ("def f(x):\n    if x.shape[0] == 1:\n        here()", Region.NONE),
        ("def f(self, x):\n    if self.print_info:\n        here()", Region.DEBUG),
        ("def f(self, x):\n    if self.fingerprint:\n        here()", Region.NONE),
        ("class LayerDropout(Module):\n    def forward(self, x):\n        here()", Region.TRAINING),
        ("class RandAugment(Module):\n    def forward(self, x):\n        here()", Region.TRAINING),
        ("class RandomRotation(Module):\n    def forward(self, x):\n        here()", Region.TRAINING),
        ("class SpecAugLFR(Module):\n    def forward(self, x):\n        here()", Region.TRAINING),
        ("class RandomProjection(Module):\n    def forward(self, x):\n        here()", Region.NONE),
        ("class DropoutAddNorm(Module):\n    def forward(self, x):\n        here()", Region.NONE),
        ("if __name__ == '__main__':\n    here()", Region.MAIN),
        (
            "import time\ndef f():\n    start = time.perf_counter()\n    here()\n    end = time.perf_counter()",
            Region.TIMED,
        ),
        ("import time\ndef f():\n    start = time.time()\n    a()\n    b()\n    c()\n    here()", Region.NONE),
        ("def benchmark_model():\n    here()", Region.TIMED),
        ("def update_timing_cache():\n    here()", Region.TIMED),
        ("def f():\n    here()", Region.NONE),
    ],
)
def test_regions(source: str, expected: Region) -> None:
    assert around(source) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/models/x.py", Region.TEST),
        ("pkg/test_x.py", Region.TEST),
        ("pkg/conftest.py", Region.TEST),
        ("benchmarks/run.py", Region.TIMED),
        ("examples/train.py", Region.TRAINING),
        ("pkg/trainer_utils.py", Region.TRAINING),
        ("recipes/dev/grpo_full_finetune_distributed.py", Region.TRAINING),
        ("pkg/transforms/autoaugment.py", Region.TRAINING),
        ("torchmetrics/functional/image/ssim.py", Region.TEST),
        ("pkg/metrics/dice.py", Region.TEST),
        ("pkg/utils/metrics.py", Region.NONE),
        ("pkg/evaluation/searcher.py", Region.TEST),
        ("pkg/evaluate_models.py", Region.TEST),
        ("pkg/evaluate_sampler/x.py", Region.NONE),
        ("pkg/ppocr.py", Region.NONE),
        ("pkg/latest/contest.py", Region.NONE),
        ("pkg/modeling.py", Region.NONE),
    ],
)
def test_paths(path: str, expected: Region) -> None:
    assert file_regions(path) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("with torch.no_grad():\n        here()", Region.INFERENCE),
        ("x = 1\n    with torch.inference_mode():\n        here()\n    return x", Region.INFERENCE),
        ("for x in y:\n        here()\n    with torch.no_grad():\n        z()", Region.TRAINING),
        ("here()", Region.TRAINING),
    ],
)
def test_inference_code_in_a_training_folder(body: str, expected: Region) -> None:
    assert around(f"import torch\ndef f(y):\n    {body}", path="training/zero_shot.py") == expected


def test_what_an_earlier_return_leaves_out_is_made_once() -> None:
    source = """
        @app.get("/")
        def ensure(self):
            if self.table is not None:
                return
            first()
            self.table = second()

        @app.get("/")
        def answer(self):
            if self.ready:
                return None
            third()

        @app.get("/kept")
        def kept(self):
            context = self.context
            if context is not None:
                return context
            context = fourth()
            self.context = context
            return context

        @app.get("/once")
        def once(self):
            global _path
            if _path is None:
                return
            fifth()
            _path = None

        @app.get("/drain")
        def drain(self):
            if self.pending is None:
                return
            sixth()
            self.pending = None

        @app.get("/started")
        def start(self):
            if self.started:
                return
            seventh()
            self.started.data.copy_(true)

        @app.get("/loaded")
        def load(self):
            if self.engine is not None or self.failed:
                return
            eighth()
            self.engine = engine

        @app.get("/filled")
        def fill(self):
            if self.filled:
                return
            ninth()
            self.other.fill_(1)
        """
    found = {}
    for view in view_of_source(textwrap.dedent(source)).functions():
        for node in view.nodes(ast.Call):
            if isinstance(node.func, ast.Name):
                found[node.func.id] = str(view.frequency(node))
    made = {"first": "setup", "second": "setup", "third": "request", "fourth": "setup"}
    made |= {"fifth": "setup", "sixth": "request", "seventh": "setup", "eighth": "setup", "ninth": "request"}
    assert found == made
