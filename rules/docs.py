"""A rule's page, made from its class: the documentation folder and ``--explain`` show the same text.

``python -m awp_lint.rules.docs [FOLDER]`` writes one page a rule and the index (default ``docs/rules``).
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from awp_lint.detector.finding import Event, MarkKind
from awp_lint.rules.base import Rule
from awp_lint.rules.registry import all_rules

FAMILIES = {
    "1": "Host–device synchronisation",
    "2": "Batching and loops",
    "3": "Fusion and redundant work",
    "4": "CUDA graphs and compilation",
    "5": "Attention and KV cache",
    "6": "Memory and transfers",
    "7": "Precision and mode",
    "8": "Serving and engine configuration",
    "9": "Communication",
}

_EVENTS = {
    Event.WAIT: "the host blocks on the device",
    Event.COPY: "bytes cross between host and device",
    Event.LAUNCHES: "device work is launched",
    Event.HOST: "host time passes",
    Event.NONE: "nothing that a run could show",
}
_MARKS = {
    MarkKind.CALL: "at this call",
    MarkKind.STATEMENT: "in this statement",
    MarkKind.LOOP: "in this loop",
    MarkKind.FUNCTION: "in this function",
}


def explain(rule: Rule) -> str:
    """The page of one rule as Markdown."""
    fix = "has a rewrite" if rule.rewrites() else "recommendation only"
    if rule.manual:
        fix = "manual: a rewrite for a few spellings only"
    confirmed = "Nothing that a run could show." if rule.event is Event.NONE else (
        f"With `--profile`: {_EVENTS[rule.event]} {_MARKS[rule.mark]}."
    )  # fmt: skip
    parts = [
        f"# {rule.id} {rule.name}",
        f"Root cause: {rule.root_cause.value} · confidence: up to {rule.confidence.value} · {fix}",
        f"## What it flags\n\n{_text(rule.what)}",
        f"## Why it costs\n\n{_text(rule.why)}",
        f"## Example\n\n```python\n{_code(rule.bad)}\n```\n\nUse instead:\n\n```python\n{_code(rule.good)}\n```",
        f"## When it is right as it is\n\n{_text(rule.fine)}",
        f"## Fix\n\n{_text(rule.safety)}{_tolerance(rule)}",
        f"## Confirmed by\n\n{confirmed}",
        "## References\n\n" + "\n".join(f"- {_link(reference)}" for reference in rule.references),
    ]
    return "\n\n".join(parts) + "\n"


def _tolerance(rule: Rule) -> str:
    """By how much results may differ, where the rule has a rewrite that is run."""
    if not rule.rewrites():
        return ""
    if not rule.tolerance:
        return "\n\nTolerance: none. Values are the same bit for bit."
    return f"\n\nTolerance: {rule.tolerance} units in the last place of a result's largest value, in the result's type."


def index() -> str:
    """The list of all rules as Markdown."""
    lines = ["# Rules", ""]
    family = ""
    for rule in all_rules():
        if rule.id[3] != family:
            family = rule.id[3]
            lines += [f"\n## {FAMILIES[family]}\n" if len(lines) > 2 else f"## {FAMILIES[family]}\n"]
            lines += ["| id | name | flags |", "|---|---|---|"]
        summary = rule.summary.replace("|", "\\|")
        lines.append(f"| [{rule.id}]({rule.id}.md) | {rule.name} | {summary} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name and text of every page."""
    return {"index.md": index(), **{f"{rule.id}.md": explain(rule) for rule in all_rules()}}


def write(folder: Path) -> None:
    """Write all pages, and remove those of rules that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")
    for page in folder.glob("AWP*.md"):
        if page.name not in wanted:
            page.unlink()


def _text(text: str) -> str:
    return inspect.cleandoc(text)


def _code(text: str) -> str:
    return inspect.cleandoc(text).strip("\n")


def _link(reference: str) -> str:
    issue = re.fullmatch(r"([\w.-]+/[\w.-]+)#(\d+)(.*)", reference, re.DOTALL)
    if issue:
        repository, number, rest = issue.groups()
        return f"[{repository}#{number}](https://github.com/{repository}/issues/{number}){rest}"
    return reference


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/rules"))
