"""Programs nobody wrote, through scan, fixes, suppressions and baselines.

A few examples a run; ``benchmarks/hardening/fuzz.py`` runs the same for as long as one likes (AWP_LINT_FUZZ_EXAMPLES).
"""

from __future__ import annotations

import ast
import json
import os
import random
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from awp_lint.detector import baseline
from awp_lint.detector.applying import Sources
from awp_lint.detector.config import Settings
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Confidence, Edit, Finding
from awp_lint.detector.ignoring import ignore_edits
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import scan
from awp_lint.patches.plan import plan_files
from awp_lint.patches.ranking import rank
from awp_lint.patches.splice import splice
from awp_lint.rules.registry import all_rules, screening_words

try:
    import hypothesmith
except ImportError:
    hypothesmith = None

EXAMPLES = int(os.environ.get("AWP_LINT_FUZZ_EXAMPLES", "12"))
CORPUS = Path(__file__).resolve().parent.parent / "corpus" / "rules"

SLOW = settings(
    max_examples=EXAMPLES, deadline=None, database=None, derandomize="AWP_LINT_FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
QUICK = settings(SLOW, max_examples=EXAMPLES * 20)


def findings_of(raw: bytes, name: str = "serve.py") -> tuple[list[Finding], str]:
    """All findings of a file with this content, after all that is done with them; "" or why it could not be read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = scan([str(path)], Settings(confidence=Confidence.LOW, jobs=1, cache=False))
            problems = [p.message for p in result.problems]
            assert not any("failed on" in problem for problem in problems), problems
            read = Sources(result.digests)
            usable = read.usable(rank(list(result.findings)), [])
            for patch in plan_files(usable, read, True, ()):
                ast.parse(patch.after)
        found = [f for f in result.findings if f.suppressed is None]
        return found, "; ".join(p.message for p in result.problems if p.fatal)


# programs ------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    ("x", "y", "mask", "logits", "self", "model", "tokens", "torch", "cache", "i", "t", "F", "nn", "np")
)
ATTRIBUTES = st.sampled_from((
    "item", "cpu", "cuda", "tolist", "numpy", "any", "all", "max", "shape", "device", "to", "float", "contiguous",
    "nonzero", "generate", "forward", "softmax", "matmul", "cat", "zeros", "arange", "tensor", "synchronize", "eval",
    "cuda", "functional", "append", "size", "transpose", "step", "half", "where", "repeat_interleave", "no_grad", "T",
))  # fmt: skip
LITERALS = st.sampled_from(
    ("0", "1", "-1", "0.5", "None", "True", "'cuda'", "'cpu'", "b'x'", "...", "1j", "f'{x}'", "()", "[]", "{}", "'é'")
)
OPERATORS = st.sampled_from(("+", "-", "*", "@", "/", "//", "%", "**", "<", "==", "and", "or", "is", "in", "|", "<<"))


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arguments = st.lists(inner | st.builds("device={}".format, inner) | st.builds("*{}".format, inner), max_size=3)
    return st.one_of(
        st.builds("{}.{}".format, inner, ATTRIBUTES),
        st.builds(
            lambda f, a, m: f"{f}.{m}({', '.join(sorted(a, key=lambda w: '=' in w))})", inner, arguments, ATTRIBUTES
        ),
        st.builds("({} {} {})".format, inner, OPERATORS, inner),
        st.builds("{}[{}]".format, inner, inner | st.just(":, -1:") | st.just("None")),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("[{} for i in {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("(lambda x: {})".format, inner),
        st.builds("(y := {})".format, inner),
        st.builds("(not {})".format, inner),
        st.builds("int({})".format, inner),
        st.builds("({}, {})".format, inner, inner),
    )


EXPRESSIONS = st.recursive(NAMES | LITERALS, _grown, max_leaves=8)


def _indented(block: list[str]) -> str:
    return "\n".join("    " + line for text in block for line in text.split("\n"))


def _blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=4).map(_indented)
    return st.one_of(
        st.builds("for t in {}:\n{}".format, EXPRESSIONS, body),
        st.builds("while {}:\n{}".format, EXPRESSIONS, body),
        st.builds("if {}:\n{}\nelse:\n{}".format, EXPRESSIONS, body, body),
        st.builds("with {}:\n{}".format, EXPRESSIONS, body),
        st.builds("try:\n{}\nexcept {}:\n{}".format, body, NAMES, body),
        st.builds("def step(self, x, *tokens, mask=None):\n{}".format, body),
        st.builds("async def serve(x):\n{}".format, body),
        st.builds("class Model(torch.nn.Module):\n{}".format, body),
        st.builds("@torch.inference_mode()\ndef generate(model, x):\n{}".format, body),
        st.builds("match {}:\n    case [x, *y]:\n        pass\n    case _:\n        {}".format, EXPRESSIONS, SIMPLE),
    )  # fmt: skip


ANNOTATIONS = EXPRESSIONS | st.sampled_from(
    (
        "torch.Tensor",
        "tuple[()]",
        "'tuple[()]'",
        "type[()]",
        "dict[str, 'x']",
        "list[int] | None",
        "'(' ",
        "Optional[()]",
    )
)
SIMPLE = st.one_of(
    EXPRESSIONS,
    st.builds("{} = {}".format, NAMES, EXPRESSIONS),
    st.builds("x, (y, *mask) = {}".format, EXPRESSIONS),
    st.builds("{}.{} += {}".format, NAMES, ATTRIBUTES, EXPRESSIONS),
    st.builds("{}[{}] = {}".format, NAMES, EXPRESSIONS, EXPRESSIONS),
    st.builds("return {}".format, EXPRESSIONS),
    st.builds("assert {}, {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("del {}".format, NAMES),
    st.sampled_from(("break", "continue", "pass", "global x", "import torch as t", "raise", "yield x")),
    st.just("from torch import *"),
    st.builds("x: {} = {}".format, ANNOTATIONS, EXPRESSIONS),
    st.builds("def typed(x: {}, *y: {}) -> {}: ...".format, ANNOTATIONS, ANNOTATIONS, ANNOTATIONS),
    st.builds("{}  # awp: ignore[AWP1] because".format, EXPRESSIONS),
)  # fmt: skip
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nimport numpy as np"
STATEMENTS = st.recursive(SIMPLE, _blocks, max_leaves=12)
PROGRAMS = st.lists(STATEMENTS, min_size=1, max_size=5).map(
    lambda rows: "\n".join((HEAD, *rows, ""))
)  # fmt: skip


@SLOW
@given(PROGRAMS)
def test_programs_of_a_grammar(program: str) -> None:
    findings_of(program.encode())


#: Words of rules: a file that holds none of them is not looked at.
WORDS = b"# " + b" ".join(sorted(screening_words(all_rules()))).replace(b"awp:", b"").replace(b"\n", b" ") + b"\n"


PYTHON = st.nothing() if hypothesmith is None else hypothesmith.from_grammar() | hypothesmith.from_node()


@pytest.mark.skipif(hypothesmith is None, reason="hypothesmith is not installed")
@SLOW
@given(PYTHON)
def test_programs_of_the_whole_language(program: str) -> None:
    raw = program.encode("utf-8", "surrogatepass")
    findings_of(WORDS + raw)
    findings_of(raw)


# what exists, damaged ------------------------------------------------------------------------------------------------

FILES = sorted(CORPUS.glob("AWP*/*.py"))
ODD = (
    "\x00",
    "\ufeff",
    "é",
    "\U0001f600",
    "\r",
    "\r\n",
    "\x0c",
    "\t",
    '"""',
    "'",
    "(",
    ")",
    "#",
    "\\\n",
    ";",
    ":",
    "@",
    "*",
    "lambda ",
)


def damaged(text: str, seed: int) -> str:
    """The text with a few lines dropped, doubled, swapped, moved in or out, or with something odd in them."""
    chance = random.Random(seed)
    lines = text.split("\n")
    for _ in range(chance.randint(1, 6)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        kind = chance.randrange(8)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(other, lines[at])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            lines[at] = "    " + lines[at]
        elif kind == 4:
            lines[at] = lines[at].removeprefix("    ")
        elif kind == 5:
            words = lines[at].split(" ")
            chance.shuffle(words)
            lines[at] = " ".join(words)
        elif kind == 6:
            place = chance.randint(0, len(lines[at]))
            lines[at] = lines[at][:place] + chance.choice(ODD) + lines[at][place:]
        else:
            lines[at] = lines[at].replace(
                chance.choice(("x", "self", "torch", ".")), chance.choice(("y", "x.y", "", "await x"))
            )
    return "\n".join(lines)


@SLOW
@given(st.sampled_from(FILES), st.integers(0, 2**32))
def test_real_files_damaged(path: Path, seed: int) -> None:
    findings_of(damaged(path.read_text("utf-8"), seed).encode("utf-8", "surrogatepass"), path.name)


@SLOW
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
def test_any_bytes_are_a_file_that_can_be_looked_at(raw: bytes) -> None:
    findings_of(b"import torch\n" + raw)
    findings_of(raw, "notes.ipynb")


# suppressions, baselines, edits --------------------------------------------------------------------------------------


@SLOW
@given(st.sampled_from([path for path in FILES if path.name.startswith("bad")]), st.integers(0, 2**32))
def test_what_is_silenced_by_comments_of_ours_is_silent(path: Path, seed: int) -> None:
    raw = path.read_text("utf-8")
    for text in (raw, damaged(raw, seed)):
        found, fatal = findings_of(text.encode("utf-8", "surrogatepass"), path.name)
        if fatal or not found:
            continue
        head = "# awp: ignore-file[AWP] generated\n"
        assert findings_of((head + text).encode(), path.name)[0] == []
        source = Source.decode(path.name, text.encode())
        edits = ignore_edits(source, found, "because")
        silent, fatal = findings_of(source.encode(splice(text, edits)), path.name)
        assert not fatal
        assert len(silent) < len(found) or not edits


@SLOW
@given(st.sampled_from([path for path in FILES if path.name.startswith("bad")]))
def test_a_baseline_knows_what_it_was_made_of(path: Path) -> None:
    found, _ = findings_of(path.read_bytes(), path.name)
    known = baseline.parse(baseline.render(found).encode("utf-8", "surrogateescape"), "known.json")
    matched = baseline.match(found, known)
    assert list(matched.new) == [] and list(matched.gone) == []
    assert len(baseline.match(found[1:], known).gone) == min(1, len(found))


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(("schema", "findings", "id", "rule", "path", "count", "x")), inner, max_size=4
    ),
    max_leaves=10,
)  # fmt: skip


@QUICK
@given(st.binary(max_size=60) | JSON.map(lambda data: json.dumps(data).encode()))
def test_a_file_that_is_no_baseline_is_told(data: bytes) -> None:
    try:
        baseline.parse(data, "known.json")
    except UsageError as error:
        assert "\n" not in str(error)


@QUICK
@given(
    st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.text(max_size=3)), max_size=6)
)
def test_edits_change_their_spans_alone(text: str, rows: list[tuple[int, int, str]]) -> None:
    edits = [Edit(*sorted((min(a, len(text)), min(b, len(text)))), new) for a, b, new in rows]
    try:
        made = splice(text, edits)
    except ValueError:
        return
    kept = sorted(set(edits), key=lambda e: (e.start, e.end, e.replacement))
    assert len(made) == len(text) + sum(len(e.replacement) - (e.end - e.start) for e in kept)
    position = 0
    for edit in kept:
        piece, position = text[position : edit.start], edit.end
        assert made.startswith(piece + edit.replacement)
        made = made[len(piece) + len(edit.replacement) :]
    assert made == text[position:]
