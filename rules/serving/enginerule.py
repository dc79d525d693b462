"""What the rules on engine settings have in common: the Python spelling, and the words of their findings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import ClassVar

from awp_lint.detector.finding import Confidence, Event
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import lower, short
from awp_lint.rules.numbers import real
from awp_lint.rules.serving.engines import PYTHON_CLASSES, Setting, costly


class EngineRule(Rule):
    """A setting of a serving engine, in a Python call; files of other kinds are read by ``configfiles``."""

    event = Event.NONE
    anywhere = True
    nodes = (ast.Call,)
    calls = frozenset(name.rpartition(".")[2] for name in PYTHON_CLASSES)
    cost_us = 1000.0

    effect: ClassVar[str]  # what the setting does, after its name: "runs every decode step without CUDA graphs"
    advice: ClassVar[str]  # one action
    setting_confidence: ClassVar[Confidence] = Confidence.MEDIUM  # of what a setting alone tells

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        engine = PYTHON_CLASSES.get(view.qualified(node.func) or "")
        if engine is None or view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED | Region.DEBUG):
            return
        for keyword in node.keywords:
            value = _literal(keyword.value)
            if keyword.arg is None or value is None or costly(engine, keyword.arg, value) != self.id:
                continue
            explained = reason_given(file.text, keyword.lineno, keyword.arg)
            yield Candidate(
                node=keyword.value,
                message=f"`{keyword.arg}={short(keyword.value)}` {self.effect}",
                action=self.advice,
                confidence=Confidence.LOW if explained else lower(self.confidence, self.setting_confidence),
                frequency=view.frequency(node),
                why=(f"a setting of {engine}", *(("a comment gives a reason",) if explained else ())),
            )


def _literal(node: ast.expr) -> Setting | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _literal(node.operand)
        return -inner if isinstance(inner, float) else None
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, bool | str):
        return node.value
    return real(node.value)


def reason_given(text: str, line: int, about: str | None = None) -> bool:
    """Whether a comment at a line of Python, or in the comment lines right above, gives a reason."""
    comments: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments[token.start[0]] = token.string.lstrip("# ")
    except (tokenize.TokenError, SyntaxError):
        return False
    if is_reason(comments.get(line, "")):
        return True
    lines = text.split("\n")
    above = line - 1
    said = ""
    while above in comments and lines[above - 1].lstrip().startswith("#"):
        said = f"{comments[above]} {said}"
        above -= 1
    return is_reason(said, about)


_BECAUSE = re.compile(
    r"#\d+|https?://|\b(because|since|due to|otherwise|needed|need(s)? to|require[sd]?|must|avoid\w*|prevent\w*"
    r"|save[sd]?|fix(es)?|work ?around|bug|crash\w*|fail\w*|hang\w*|oom|memory|not support\w*|unsupported"
    r"|incompatib\w*|debug\w*|disable[sd]?|compar\w*|reproduc\w*|determin\w*|slow\w*|faster|only|share[sd]?|issue)\b",
    re.IGNORECASE,
)


def is_reason(comment: str, about: str | None = None) -> bool:
    """Whether a comment is prose: three words or more, not a directive of a linter or an expectation of a test.

    ``about`` is the setting's name where the comment stands above the whole command: it then has to give a reason, or
    to speak of that setting, since most such comments only say what is started.
    """
    plain = comment.strip()
    if len(plain.split()) < 3 or plain.startswith(("expect", "noqa", "type:", "awp:", "pylint", "--")):
        return False
    if about is None:
        return True
    named = [word for word in re.split(r"[-_\s]+", about.lower()) if len(word) > 4]
    return _BECAUSE.search(plain) is not None or any(word in plain.lower() for word in named)
