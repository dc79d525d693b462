"""One vote of the jury: what a model has to answer, and what its claims are worth when they are looked up.

A claim cites a line and a piece of the code on it. A citation that is not there, or lies where no code is, makes the
claim void; so does a claim that the semantic model, the known frequency or a profile contradicts.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from awp_lint.detector.advice.subject import Subject
from awp_lint.detector.semantics.values import Certainty, Device
from awp_lint.detector.semantics.view import FunctionView, Region


class Opinion(enum.Enum):
    """What a juror says of a finding."""

    REAL = "real"
    FALSE_ALARM = "false_alarm"
    UNSURE = "unsure"


class About(enum.Enum):
    """What a claim is about; each kind is checked in its own way."""

    ON_DEVICE = "on_device"
    NOT_ON_DEVICE = "not_on_device"
    HOT = "hot"
    NOT_HOT = "not_hot"
    NOT_INFERENCE = "not_inference"  # test, training, debug, export or error path
    NEEDED = "needed"  # the code has to be as it is
    OTHER = "other"


_MARKUP = re.compile(r"https?:\S*|[<>\[\]|@`]")  # a model's words are no links, mentions or HTML in a report
_FOR = (About.ON_DEVICE, About.HOT, About.OTHER)
_AGAINST = (About.NOT_ON_DEVICE, About.NOT_HOT, About.NOT_INFERENCE, About.NEEDED, About.OTHER)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdict", "claims"],
    "properties": {
        "verdict": {"type": "string", "enum": [opinion.value for opinion in Opinion]},
        "claims": {
            "type": "array",
            "maxItems": 5,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["about", "line", "quote", "reason"],
                "properties": {
                    "about": {"type": "string", "enum": [about.value for about in About]},
                    "line": {"type": "integer"},
                    "quote": {"type": "string", "maxLength": 200},
                    "reason": {"type": "string", "maxLength": 300},
                },
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A reason for a verdict; ``fault`` is why it is void, "" where it stands."""

    about: About
    line: int
    quote: str
    reason: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Vote:
    """A juror's verdict. ``opinion`` is what counts: UNSURE where no claim for what was said stands."""

    model: str
    said: Opinion
    claims: tuple[Claim, ...]

    @property
    def standing(self) -> tuple[Claim, ...]:
        """The claims that support what was said and were not refuted."""
        kinds = {Opinion.REAL: _FOR, Opinion.FALSE_ALARM: _AGAINST, Opinion.UNSURE: ()}[self.said]
        return tuple(claim for claim in self.claims if not claim.fault and claim.about in kinds)

    @property
    def opinion(self) -> Opinion:
        """The vote as it is counted."""
        return self.said if self.standing else Opinion.UNSURE


def vote_of(answer: Mapping[str, Any], model: str, subject: Subject) -> Vote:
    """The vote in a valid answer, its claims looked up."""
    claims = []
    for item in answer["claims"]:
        about, line = About(item["about"]), item["line"]
        fault = _citation(line, item["quote"], subject) or _contradiction(about, line, item["quote"], subject)
        claims.append(Claim(about, line, _plain(item["quote"]), _plain(item["reason"]), fault))
    return Vote(model, Opinion(answer["verdict"]), tuple(claims))


def _plain(text: str) -> str:
    """One line of printable characters: it goes to terminals and into comments."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(_MARKUP.sub(" ", printable).split())


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _citation(line: int, quote: str, subject: Subject) -> str:
    """What is wrong with a citation; "" where the line exists, is shown and says so."""
    shown = subject.code.get(line)
    if shown is None:
        return f"line {line} was not shown"
    wanted = _squeezed(quote)
    if len(wanted) < 2 or not any(c.isalnum() for c in wanted):
        return "cites nothing"
    if wanted not in _squeezed(shown):
        return f"line {line} does not say so"
    return ""


def _nodes(line: int, quote: str, view: FunctionView) -> Iterator[ast.expr]:
    """The expressions on a line that are cited, or that are a part of what is."""
    wanted = _squeezed(quote)
    for node in ast.walk(view.node):
        if isinstance(node, ast.expr) and node.lineno == line:
            text = _squeezed(ast.unparse(node))
            if len(text) > 1 and (text in wanted or wanted in text):
                yield node


def _contradiction(about: About, line: int, quote: str, subject: Subject) -> str:
    """What our own analysis or a run says against a claim; "" where it does not know better."""
    view = subject.view
    if about in (About.ON_DEVICE, About.NOT_ON_DEVICE):
        return _device_fault(about, line, quote, subject)
    if about in (About.HOT, About.NOT_HOT):
        return _frequency_fault(about, line, subject)
    if about is About.NOT_INFERENCE:
        node = _statement(line, view)
        if node is not None and view.regions(node) & Region.INFERENCE and subject.finding.frequency != "unknown":
            return "it runs under inference mode, for requests"
    return ""


def _device_fault(about: About, line: int, quote: str, subject: Subject) -> str:
    owned = set(subject.view.nodes(ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Compare))
    for node in _nodes(line, quote, subject.view):
        if node not in owned:
            continue
        value = subject.view.value(node)
        if value.certainty is not Certainty.PROVEN or not value.is_tensor:
            continue
        if (
            about is About.NOT_ON_DEVICE
            and value.device is Device.ACCELERATOR
            and _squeezed(ast.unparse(node)) == _squeezed(quote)
        ):
            return f"`{ast.unparse(node)[:60]}` is proven to be on the device"
        if (
            about is About.ON_DEVICE
            and value.device is Device.HOST
            and _squeezed(ast.unparse(node)) == _squeezed(quote)
        ):
            return f"`{ast.unparse(node)[:60]}` is proven to be on the host"
    return ""


def _frequency_fault(about: About, line: int, subject: Subject) -> str:
    evidence = subject.finding.evidence
    own = subject.finding.span.line <= line <= subject.finding.span.end_line
    measured = own and evidence is not None and evidence.unit in ("step", "request")
    if measured and about is About.NOT_HOT:
        assert evidence is not None
        if evidence.calls_per_unit >= 1:
            return f"it ran {evidence.calls_per_unit:.4g} times a {evidence.unit}"
    node = _statement(line, subject.view)
    if node is None:
        return ""
    frequency = subject.view.frequency(node)
    if frequency.certainty is not Certainty.PROVEN:
        return ""
    if about is About.NOT_HOT and frequency.hot:
        return f"it is proven to run {frequency}"
    if about is About.HOT and not frequency.path:
        return "it is proven to run in set-up"
    return ""


def _statement(line: int, view: FunctionView) -> ast.AST | None:
    """The innermost statement on a line."""
    found: ast.stmt | None = None
    for node in ast.walk(view.node):
        if not isinstance(node, ast.stmt) or node is view.node:
            continue
        inside = node.lineno <= line <= (node.end_lineno or line)
        if inside and (found is None or node.lineno >= found.lineno):
            found = node
    return found
