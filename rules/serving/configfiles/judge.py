"""From settings and variables to findings: one place for rules, words, confidence and fingerprints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from awp_lint.detector.finding import Confidence, Finding, Fix, Safety, Span
from awp_lint.rules.base import Rule
from awp_lint.rules.common import lower
from awp_lint.rules.normal import digest
from awp_lint.rules.numbers import whole
from awp_lint.rules.registry import rule
from awp_lint.rules.serving.configfiles.launches import Launch, Option
from awp_lint.rules.serving.configfiles.words import Word
from awp_lint.rules.serving.enginerule import EngineRule, is_reason
from awp_lint.rules.serving.engines import costly, is_switch, setting
from awp_lint.rules.serving.environment import MINOR, debug_switch
from awp_lint.rules.serving.parallel import degree, idle_devices, oversubscribed
from awp_lint.rules.suppressions import Suppressions

_DEVELOPMENT = re.compile(
    r"(^|[/._-])(dev|devel|develop|development|debug|local|tests?|e2e|ci|bench\w*|perf|profil\w*|training|sft|grpo|rlhf)"
    r"([/._-]|$)|(^|/)\.(github|buildkite|circleci|gitlab\b[^/]*|devcontainer)"
)
#: The rules that are asked of such files.
CONFIG_RULES = ("AWP609", "AWP804", "AWP805", "AWP806", "AWP807", "AWP808", "AWP809", "AWP810", "AWP811")
#: Devices without CUDA graphs, in paths, images and ``--device``.
_OTHER_DEVICE = re.compile(
    r"(^|[^a-z])(cpu|xpu|ipex|openvino|gaudi|habana|hpu|neuron\w*|inferentia|ascend|npu|tpu|mlx)([^a-z]|$)"
)
#: What a file says that has to do with a model on an accelerator.
_MODEL = re.compile(
    r"torch|transformers|diffusers|vllm|sglang|cuda|nvidia|rocm|\bgpus?\b|whisper|onnxruntime|llama", re.IGNORECASE
)
#: Prefill and decode in engines of their own: chunks and prefixes are looked after elsewhere.
_SPLIT = re.compile(r"kv_?(producer|consumer)|kv-transfer-config|disaggregat|disagg[_-]", re.IGNORECASE)
_ENCODES = "ec_producer"  # the encoder of a split engine: it decodes nothing
_GRAPHS = "AWP804"
_NEAR = 4  # parts of a path that are looked at: where the checkout lies says nothing


@dataclass(slots=True)
class Surroundings:
    """What else is known where a server starts. None: not written down."""

    variables: Mapping[str, str] = field(default_factory=dict)
    devices: int | None = None
    cores: float | None = None
    launches: int = 1  # how many servers share the devices
    image: str = ""


class Judge:
    """Collects the findings of one file."""

    def __init__(self, path: str, text: str, comments: Mapping[int, str]) -> None:
        self.path = path
        self.comments = comments
        self.findings: list[Finding] = []
        self.silenced = Suppressions(text, comments)
        self.command: tuple[int, int] | None = None  # first and last line of the one that is judged
        self.shared = False  # the devices are, on purpose
        near = "/".join(path.lower().split("/")[-_NEAR:])
        self._development = _DEVELOPMENT.search(near) is not None
        self._elsewhere = _OTHER_DEVICE.search(near) is not None
        self._split = _SPLIT.search(text) is not None
        self._model = _MODEL.search(text) is not None
        self._lines = text.split("\n")
        self._seen: Counter[tuple[str, str]] = Counter()

    def launch(self, found: Launch, around: Surroundings) -> None:
        """Judge a server and its settings."""
        device = str(found.settings().get("device", ""))
        elsewhere = _OTHER_DEVICE.search(f"{around.image} {device}".lower()) is not None
        elsewhere = elsewhere or _ENCODES in found.said
        for option in found.options:
            self.option(found.engine, option, elsewhere)
        if found.engine in ("uvicorn", "gunicorn", "flask"):
            self._web(found, around)
            return
        settings = found.settings()
        if found.engine == "tgi" and "NUM_SHARD" in around.variables:
            settings.setdefault("num-shard", setting(around.variables["NUM_SHARD"]))
        if found.engine == "tgi" and "num-shard" not in settings:
            return  # takes all devices that it sees
        used = degree(settings)
        idle = idle_devices(used, around.devices) if around.launches == 1 else None
        if idle is not None:
            self._add(
                "AWP809",
                found.word,
                f"the engine uses {used} of the {around.devices} devices that it is given",
                f"use the other {idle} (data parallel replicas), or do not reserve them",
                str(used),
            )

    def option(self, engine: str, option: Option, elsewhere: bool = False) -> None:
        """Judge one setting of an engine; ``elsewhere``: it runs where no CUDA graph would."""
        if isinstance(option.value, str) and is_switch(engine, option.name):
            option = replace(option, value=True)  # the word after the flag is an argument of its own
        if option.value is None:
            return
        name = costly(engine, option.name, option.value)
        owner = rule(name) if name is not None else None
        if not isinstance(owner, EngineRule) or (owner.id == _GRAPHS and (elsewhere or self._elsewhere)):
            return
        shown = option.word.text if option.value is True else f"{option.word.text} {_shown(option.value)}"
        if "=" in option.word.text or ": " in option.word.text or option.value is False:
            shown = option.word.text
        self._add(owner.id, option.word, f"`{shown}` {owner.effect}", owner.advice, option.name)

    def variable(self, name: str, value: str, word: Word, engine: str | None = None) -> None:
        """Judge one environment variable; TGI takes every option as a variable too."""
        effect = debug_switch(name, value)
        if effect is not None:
            said = f"`{name}={value}` {effect}"
            self._add("AWP811", word, said, "remove it from what serves", name, unsure=name in MINOR)
        elif engine == "tgi" and (known := setting(value)) is not None:
            self.option(engine, Option(name.lower().replace("_", "-"), known, word))

    def _web(self, found: Launch, around: Surroundings) -> None:
        settings = found.settings()
        for name in ("reload", "debug"):
            if settings.get(name) is True:
                option = next(o for o in found.options if o.name == name)
                message = f"`{found.engine} {option.word.text}` starts a development server"
                self._add("AWP808", option.word, message, "serve without it", name, unsure=not self._model)
        workers = settings.get("workers", settings.get("w"))
        threads = whole(around.variables.get("OMP_NUM_THREADS", ""))
        if not isinstance(workers, float) or threads is None or around.cores is None:
            return
        if oversubscribed(threads, int(workers), around.cores):
            message = f"{workers:g} workers of {threads} threads share {around.cores:g} cores"
            self._add("AWP810", found.word, message, "give each worker its share of the cores", "workers")

    def _add(self, rule_id: str, word: Word, message: str, action: str, key: str, *, unsure: bool = False) -> None:
        owner = rule(rule_id)
        assert isinstance(owner, Rule)
        reason = self._reason(word.line, key)
        silenced = self.silenced.reason((rule_id,), *(self.command or (word.line, word.line)))
        confidence = owner.confidence
        if isinstance(owner, EngineRule):
            confidence = lower(confidence, owner.setting_confidence)
        meant = (self.shared and rule_id == "AWP805") or (self._split and rule_id == "AWP806")
        if reason or unsure or self._development or meant:
            confidence = Confidence.LOW
        ordinal = self._seen[rule_id, key]
        self._seen[rule_id, key] += 1
        self.findings.append(
            Finding(
                id=digest(rule_id, self.path, "<file>", key, str(ordinal)),
                rule=rule_id,
                name=owner.name,
                path=self.path,
                span=Span(word.line, word.column, word.line, word.column + len(word.text.split("\n")[0])),
                function="<module>",
                message=f"{message}; {action}.",
                why=("a comment gives a reason",) if reason else (),
                root_cause=owner.root_cause,
                frequency="setup",
                confidence=confidence,
                group=digest(rule_id, key, " ".join(word.text.split())),
                score=owner.cost_us * {"high": 1.0, "medium": 0.5, "low": 0.1}[confidence.value],
                suppressed=silenced,
                fix=Fix(title=action, safety=Safety.MANUAL),
            )
        )

    def _reason(self, line: int, key: str) -> bool:
        first = line if self.command is None else self.command[0]
        if is_reason(self.comments.get(line, "")):
            return True
        return any(is_reason(self._above(number), key) for number in {line, first})

    def _above(self, line: int) -> str:
        """The comment lines right above a line, joined."""
        said: list[str] = []
        number = line - 1
        while number in self.comments and self._lines[number - 1].lstrip().startswith(("#", "//")):
            said.insert(0, self.comments[number])
            number -= 1
        return " ".join(said)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
