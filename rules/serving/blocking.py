"""What keeps a thread busy or waiting: a table of library calls, and calls that run models by their names."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from awp_lint.detector.semantics.library import lookup
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import callee, whole_program
from awp_lint.rules.serving.handlers import awaited, own_functions, runs_model

#: Dotted names of calls that block, to what they do.
CALLS: dict[str, str] = {
    "time.sleep": "sleeps",
    "os.system": "waits for a process",
    "subprocess.run": "waits for a process",
    "subprocess.call": "waits for a process",
    "subprocess.check_call": "waits for a process",
    "subprocess.check_output": "waits for a process",
    "requests.get": "waits for the network",
    "requests.post": "waits for the network",
    "requests.put": "waits for the network",
    "requests.request": "waits for the network",
    "httpx.get": "waits for the network",
    "httpx.post": "waits for the network",
    "urllib.request.urlopen": "waits for the network",
    "urllib.request.urlretrieve": "waits for the network",
    "huggingface_hub.snapshot_download": "waits for the network",
    "huggingface_hub.hf_hub_download": "waits for the network",
    "cv2.imread": "decodes an image",
    "cv2.imdecode": "decodes an image",
    "cv2.imencode": "encodes an image",
    "cv2.VideoCapture": "decodes a video",
    "imageio.imread": "decodes an image",
    "imageio.v3.imread": "decodes an image",
    "torchvision.io.read_image": "decodes an image",
    "torchvision.io.decode_image": "decodes an image",
    "torchvision.io.read_video": "decodes a video",
    "decord.VideoReader": "decodes a video",
    "librosa.load": "decodes and resamples audio",
    "librosa.resample": "resamples audio",
    "soundfile.read": "decodes audio",
    "torchaudio.load": "decodes audio",
    "whisper.load_audio": "decodes audio",
    "pydub.AudioSegment.from_file": "decodes audio",
    "torch.load": "reads weights",
    "torch.save": "writes weights",
    "torch.cuda.synchronize": "waits for the device",
}
_MODEL_METHODS = re.compile(
    r"(batch_)?(generate|infer|inference|predict|transcribe|synthesi[sz]e|translate|summari[sz]e|classify|detect|segment"
    r"|embed|rerank|denoise|upscale)(_(gate|batch|text|texts|image|images|audio|speech|sync|one|all))?$"
)
_MODEL_OWNERS = re.compile(
    r"(^|_)(model|models|worker|pipe|pipeline|engine|llm|lm|predictor|detector|encoder|embedder|reranker|tts|asr|whisper"
    r"|classifier|generator|segmenter|recogni[sz]er|inferencer|transcriber|translator|backend|runner)$"
)
_ASYNC_CLASSES = re.compile(r"Async|async_|\baio", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Blocking:
    """A call that blocks. ``sure``: by a table or by the value's class; ``heavy``: for milliseconds or more."""

    call: ast.Call
    what: str
    sure: bool
    heavy: bool = True


def blocking(call: ast.Call, view: FunctionView, file: FileView, depth: int = 2) -> Blocking | None:
    """How a call blocks the thread it runs in, None where it is not known to."""
    dotted = view.qualified(call.func)
    if dotted is not None and dotted in CALLS:
        return Blocking(call, CALLS[dotted], True)
    if awaited(call, view):
        return None
    if runs_model(call, view):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        value = view.value(owner)
        if value.cls is not None and _ASYNC_CLASSES.search(value.cls):
            return None
        return Blocking(call, "runs the model", value.kind is not Kind.UNKNOWN)
    if _loads(dotted, file):
        return Blocking(call, "loads a model", True)
    if view.value(call.func).kind is Kind.TOKENIZER:
        return Blocking(call, "tokenises", True, heavy=False)
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("item", "tolist", "cpu", "numpy") and not call.args:
        value = view.value(call.func.value)
        if value.on_device and value.device is not Device.HOST:
            return Blocking(call, "waits for the device", True)
    if depth > 0:
        for other in own_functions(call, view, file):
            for inner in other.nodes(ast.Call):
                assert isinstance(inner, ast.Call)
                found = blocking(inner, other, file, depth - 1)
                if found is not None and found.heavy:
                    return Blocking(call, f"{found.what} (line {inner.lineno})", found.sure)
    return _by_name(call, view)


def _loads(dotted: str | None, file: FileView) -> bool:
    if dotted is None:
        return False
    fact = lookup(dotted, file.target)
    return fact is not None and "loads" in fact.effects


def _by_name(call: ast.Call, view: FunctionView) -> Blocking | None:
    """``worker.generate(…)``: a method that by its name runs a model, on an object that by its name holds one."""
    if not isinstance(call.func, ast.Attribute):
        return None
    own = callee(call) == "run" and bool(view.targets(call)) and whole_program(view.frequency(call))
    if not own and not _MODEL_METHODS.match(callee(call)):
        return None
    owner = call.func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    value = view.value(owner)
    if not _MODEL_OWNERS.search(name.lower()) or value.kind in (Kind.NDARRAY, Kind.STRING, Kind.TOKENIZER):
        return None
    if _ASYNC_CLASSES.search(value.cls or "") or _ASYNC_CLASSES.search(name):
        return None
    return Blocking(call, "runs the model", False)
