"""Asking the project, and asking again without it."""

from __future__ import annotations

from typing import Any

import pytest

from awp_lint.detector.finding import Frame
from awp_lint.detector.semantics.asking import Answers, Asking, Unanswered, from_memory, from_project
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.facts import FileFacts, shape

SOURCES = {
    "app.py": "from lib import work\n@app.get('/')\ndef handler(x):\n    for t in timesteps:\n        work(x)\n",
    "lib.py": "def work(x):\n    return helper(x)\ndef helper(x): ...\n",
}


def facts_of(project: Any, path: str) -> FileFacts:
    return next(file.facts for file in project.index.files if file.path == path)


def test_remembered_answers_hold_when_lines_move(link: Any) -> None:
    project = link(SOURCES)
    answers: Answers = {}
    asking = Asking(
        "lib.py",
        facts_of(project, "lib.py"),
        from_project(project, "lib.py", answers),
        lambda path: facts_of(project, path),
    )
    before = asking.entered("helper", 3)
    assert str(before.frequency) == "request×step"
    assert before.frequency.chain == (Frame("app.py", 5, "handler"), Frame("lib.py", 2, "work"))
    assert asking.reached("work", 1, (2, 11)) == ("lib.helper",)

    moved = link({path: "# one line more\n" + text for path, text in SOURCES.items()})
    assert [shape(file.facts) for file in moved.index.files] == [shape(file.facts) for file in project.index.files]
    again = Asking("lib.py", facts_of(moved, "lib.py"), from_memory(answers), lambda path: facts_of(moved, path))
    after = again.entered("helper", 4)
    assert after.frequency.path == before.frequency.path
    assert after.frequency.chain == (Frame("app.py", 6, "handler"), Frame("lib.py", 3, "work"))
    assert again.reached("work", 2, (3, 11)) == ("lib.helper",)
    with pytest.raises(Unanswered):
        again.is_class("lib.helper")


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ("import torch\n\n\n# more\ndef f(x):\n    return  g(x)\n", True),
        ("import torch\ndef f(x):\n    y = 1\n    return g(x)\n", True),
        ("import torch\ndef f(x):\n    return g(h(x))\n", False),
        ("import torch\ndef f(x):\n    for t in timesteps:\n        return g(x)\n", False),
        ("import torch\ndef f(x, y):\n    return g(x)\n", False),
        ("import torch\n@cached\ndef f(x):\n    return g(x)\n", False),
        ("import torch as t\ndef f(x):\n    return g(x)\n", False),
    ],
)
def test_shapes(changed: str, same: bool) -> None:
    import ast

    source = "import torch\ndef f(x):\n    return g(x)\n"
    shapes = [shape(extract(ast.parse(text), text)) for text in (source, changed)]
    assert (shapes[0] == shapes[1]) is same
