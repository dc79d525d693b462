"""Faults written into real code: how many each rule finds, and how many look-alikes it takes for faults.

    python benchmarks/precision/inject.py FOLDER [AWP101 AWP5 ...] [--sites 100] [--seed 7] [--show] [--save NAME]

FOLDER is the unpacked ``transformers`` package. Functions and classes are drawn by the seed from its model files (those
of at most 1,000 lines); each gets up to three snippets of ``faults``, faults and look-alikes with their spellings in
turn. The changed files are copied to a package of their own and scanned once, all rules on, at the default level (a
rule that is hidden there as a whole: at its own, and its row has a star). A
fault counts as found where its rule (alone, or absorbed by another one's finding) has a finding on its lines; a
look-alike is a false alarm of its rule if it has one there. The last column counts those on which another rule has one.

A fault is one by the definition of ``reading.md``, in the place where it is written: what is small is a fault where a
token passes (``decoder``: the ``forward`` of a layer that is handed the cache), and a look-alike in the layers of a
model that takes its input whole and generates nothing (``encoder``). A rule with faults of two kinds has half of them
of each.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent

sys.path.insert(0, str(Path(__file__).resolve().parent))

from faults import ALL, Faults

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Finding
from awp_lint.detector.scan import scan
from awp_lint.rules.registry import all_rules

_INTEGERS = re.compile(r"mask|ids?$|index|indices|position|label|length|grid|shape|offset|token_type|bucket|seqlens")
_HEADER = """import copy
import gc
import logging as _logging
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

_log = _logging.getLogger(__name__)
"""
#: What is run once a layer, by the usual names: its ``forward`` is on the path of every step.
_LAYERS = re.compile(
    r"(Layer|Attention|SelfAttention|Mlp|MLP|Block|RMSNorm|LayerNorm|FeedForward|FFN|Experts|MoE|SelfOutput|Intermediate)$"
)
#: The cache as a layer is handed it: what stands there runs for every token.
_CACHES = re.compile(r"past_key_values?|layer_past|cache|past_kv")
#: A file in which something generates, or could.
_GENERATES = re.compile(r"GenerationMixin|\bpast_key_values?\b|\blayer_past\b")
#: Decorators of classes whose ``forward`` is replaced by a faster implementation where there is one.
_SWAPPED = re.compile(r"use_\w+_implementation|use_kernel")
#: Files of the package that every model leans on: bases, caches, masks, outputs, generation.
_SHARED = (
    "modeling_layers.py", "modeling_utils.py", "modeling_outputs.py", "cache_utils.py", "masking_utils.py",
    "activations.py", "generation/utils.py", "generation/logits_process.py", "generation/stopping_criteria.py",
)  # fmt: skip
#: How many snippets one file takes at most, by kind, and one function: each of another rule or spelling.
_SNIPPETS_A_FILE = {"layer": 18, "decoder": 12, "encoder": 6, "class": 6, "module": 8, "file": 3}
_SNIPPETS_A_SITE = {"layer": 3, "decoder": 3, "encoder": 3}
#: Rules that hold their peace where a function has the other's snippet: a scan of their own.
_APART = ("AWP501", "AWP503")
_MOST_LINES = 1000  # of a file: a scan costs by the line


@dataclass(frozen=True)
class Site:
    """A place in a file. ``line``: what is inserted comes before it (1-based, of the original)."""

    file: str  # below the package
    kind: str
    line: int
    column: int
    tensor: str = ""


@dataclass(frozen=True)
class Planted:
    """A snippet at a site, with its first and last line in the changed file once that is written."""

    site: Site
    rule: str
    text: str
    fault: bool
    spelling: int
    first: int = 0
    last: int = 0


def sites(root: Path) -> dict[str, list[Site]]:
    """All sites of the package's model files, by kind."""
    found: dict[str, list[Site]] = defaultdict(list)
    for path in sorted(root.glob("models/*/configuration_*.py")):
        name = path.relative_to(root).as_posix()
        lines = path.read_text(encoding="utf-8").count("\n")
        found["file"] += [Site(name, "file", lines + 2, 0)] * _SNIPPETS_A_FILE["file"]
    for path in sorted(root.glob("models/*/modeling_*.py")):
        if re.search(r"modeling_(flax|tf)_", path.name):
            continue
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > _MOST_LINES:
            continue
        name = path.relative_to(root).as_posix()
        tree = ast.parse(text)
        per_file: dict[str, list[Site]] = defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for site in _in_class(node, name):
                    per_file[site.kind].append(site)
                    if site.kind == "layer" and not _GENERATES.search(text):
                        per_file["encoder"].append(replace(site, kind="encoder"))
        per_file["module"].append(Site(name, "module", text.count("\n") + 2, 0))
        for kind, listed in per_file.items():
            random.Random(name).shuffle(listed)
            most = _SNIPPETS_A_FILE[kind]
            slots = _SNIPPETS_A_SITE.get(kind, most)
            found[kind] += (listed[: most // slots or 1] * slots)[:most]
    return found


def _in_class(node: ast.ClassDef, name: str) -> Iterator[Site]:
    if any("GenerationMixin" in ast.unparse(base) for base in node.bases) and node.end_lineno is not None:
        yield Site(name, "class", node.end_lineno + 1, node.body[0].col_offset)
    swapped = any(_SWAPPED.search(ast.unparse(decorator)) for decorator in node.decorator_list)
    if swapped or not _LAYERS.search(node.name):
        return
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name != "forward":
            continue
        given = [
            argument.arg
            for argument in method.args.args[1:]
            if argument.annotation is not None
            and ast.unparse(argument.annotation) == "torch.Tensor"
            and not _INTEGERS.search(argument.arg)
        ]
        body = method.body
        if given and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        if given and body and not hasattr(body[0], "decorator_list"):
            site = Site(name, "layer", body[0].lineno, body[0].col_offset, given[0])
            yield site
            if any(_CACHES.fullmatch(argument.arg) for argument in (*method.args.args, *method.args.kwonlyargs)):
                yield replace(site, kind="decoder")


def plant(faults: Sequence[Faults], available: dict[str, list[Site]], count: int, seed: int) -> list[Planted]:
    """Draw sites for the faults and look-alikes of each rule, each site once."""
    drawn = random.Random(seed)
    free = {kind: list(listed) for kind, listed in available.items()}
    files = sorted({site.file for listed in free.values() for site in listed})
    drawn.shuffle(files)
    order = {name: number for number, name in enumerate(files)}
    for listed in free.values():
        listed.sort(key=lambda site: order[site.file])  # few files, all their sites (a stable sort)
    planted: list[Planted] = []
    kinds = Counter((one.rule, fault) for one in faults for fault in (True, False) if one.snippets(fault))
    for one in faults:
        taken: set[tuple[str, int]] = set()  # functions that hold a snippet of the rule already
        for fault in (True, False):
            snippets = one.snippets(fault)
            for number in range(count // kinds[one.rule, fault] if snippets else 0):
                site = _next(free[one.kind], taken if one.kind in _SNIPPETS_A_SITE else set())
                if site is None:
                    break
                spelling = number % len(snippets)
                text = snippets[spelling].format(x=site.tensor, u=f"{one.rule.lower()}{one.kind[0]}{number}")
                planted.append(Planted(site, one.rule, text, fault, spelling))
    return planted


def _next(free: list[Site], taken: set[tuple[str, int]]) -> Site | None:
    """Take the first site whose function is not among those taken."""
    for index, site in enumerate(free):
        if (site.file, site.line) not in taken:
            taken.add((site.file, site.line))
            return free.pop(index)
    return None


def write(root: Path, target: Path, planted: Sequence[Planted]) -> list[Planted]:
    """The changed files below ``target``, and the snippets with their lines there."""
    by_file: dict[str, list[Planted]] = defaultdict(list)
    for one in planted:
        by_file[one.site.file].append(one)
    placed: list[Planted] = []
    for name, listed in by_file.items():
        lines = (root / name).read_text(encoding="utf-8").split("\n")
        header = _header_line(lines)
        added = _HEADER.rstrip("\n").split("\n")
        out: list[str] = []
        queue = sorted(listed, key=lambda one: one.site.line)
        for number in range(1, len(lines) + 2):
            while queue and queue[0].site.line <= number:
                one = queue.pop(0)
                if one.site.kind not in _SNIPPETS_A_SITE:
                    out += [""] if one.site.kind == "class" else ["", ""]
                snippet = indent(one.text, " " * one.site.column).split("\n")
                placed.append(replace(one, first=len(out) + 1, last=len(out) + len(snippet)))
                out += snippet
                if one.site.kind == "class":
                    out.append("")
            if number == header:
                out += added
            if number <= len(lines):
                out.append(lines[number - 1])
        text = "\n".join(out) + "\n"
        if re.search(r"^__all__\b", text, re.MULTILINE):  # what is added is meant to be used
            classes = [
                c
                for one in listed
                if one.site.kind in ("module", "file")
                for c in re.findall(r"^class (\w+)", one.text, re.M)
            ]
            text += f"__all__ += {classes}\n"
        ast.parse(text)
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for folder in (path.parent, path.parent.parent, target):
            (folder / "__init__.py").touch()
    for name in _SHARED:
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_bytes((root / name).read_bytes())
        (target / name).parent.joinpath("__init__.py").touch()
    return placed


def _header_line(lines: list[str]) -> int:
    """The line of the first import that is not from ``__future__``."""
    tree = ast.parse("\n".join(lines))
    for node in tree.body:
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            return node.lineno
    return 1


def on(one: Planted, findings: dict[str, list[Finding]]) -> list[Finding]:
    """The findings on a snippet's lines."""
    return [f for f in findings.get(one.site.file, []) if one.first <= f.span.line <= one.last]


def named(finding: Finding, rule: str) -> bool:
    """Whether a finding is the rule's own or has absorbed it."""
    return finding.rule == rule or rule in finding.also


def interval(hits: int, total: int) -> str:
    """Share and its 95 % Wilson interval."""
    if not total:
        return "   -"
    share, z = hits / total, 1.96
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * ((share * (1 - share) + z * z / (4 * total)) / total) ** 0.5 / (1 + z * z / total)
    return f"{share:5.2f} [{max(0.0, middle - half):.2f}, {min(1.0, middle + half):.2f}]"


def measure(
    root: Path, faults: Sequence[Faults], available: dict[str, list[Site]], arguments: argparse.Namespace
) -> list[str]:
    """One scan for some rules: their rows."""
    planted = plant(faults, available, arguments.sites, arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / root.name
        placed = write(root, target, planted)
        settings = Settings(jobs=1, cache=False, confidence=Confidence.LOW)
        result = scan([str(target)], settings, cwd=folder)
    prefix = f"{root.name}/"
    findings: dict[str, list[Finding]] = defaultdict(list)
    shown = Settings().confidence.order
    levels = {rule.id: rule.confidence.order for rule in all_rules()}
    for finding in result.findings:
        # At the default level; a rule that is below it as a whole at its own.
        if finding.confidence.order < min(shown, levels.get(finding.rule, shown)):
            continue
        findings[finding.path.removeprefix(prefix)].append(finding)
    rows = []
    for one in {one.rule: one for one in faults}.values():
        mine = [p for p in placed if p.rule == one.rule]
        bad, good = [p for p in mine if p.fault], [p for p in mine if not p.fault]
        missed = [p for p in bad if not any(named(f, name) for f in on(p, findings) for name in (one.rule, *one.same))]
        false = [p for p in good if any(named(f, one.rule) for f in on(p, findings))]
        other = [p for p in good if p not in false and on(p, findings)]
        hidden = "*" if levels[one.rule] < shown else " "
        rows.append(
            f"{one.rule}{hidden} {len(bad):4} {interval(len(bad) - len(missed), len(bad))}   "
            f"{len(good):4} {interval(len(false), len(good))}  {len(other):5}"
        )
        if arguments.show:
            for label, listed in (("missed", missed), ("false", false), ("other", other)):
                spellings = defaultdict(list)
                for p in listed:
                    spellings[f"{p.site.kind} {p.spelling}"].append(p)
                for spelling, some in sorted(spellings.items()):
                    first = some[0]
                    said = " ".join(sorted({f.rule for p in some for f in on(p, findings)}))
                    where = f"{first.site.file}:{first.first}"
                    print(f"  {one.rule} {label} spelling {spelling}: {len(some)} ({said}), {where}")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure the rules that were asked for, and keep the table where ``--save`` names a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("rules", nargs="*", default=["AWP"])
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--together", type=int, default=10, help="rules a scan")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    chosen = [one for one in ALL if one.rule.startswith(tuple(arguments.rules))]
    available = sites(arguments.folder)
    print("rule    faults found              look-alikes false alarms       others")
    rows: list[str] = []
    alone = [[one] for one in chosen if one.rule in _APART]
    others = sorted({one.rule for one in chosen if one.rule not in _APART})
    groups = [
        [one for one in chosen if one.rule in others[start : start + arguments.together]]
        for start in range(0, len(others), arguments.together)
    ]
    for group in (*alone, *groups):
        rows += measure(arguments.folder, group, available, arguments)
    if arguments.save is not None:
        _keep(arguments, rows)


_LEGEND = (
    "Share found, and share of look-alikes that the rule takes for a fault, with 95 % Wilson intervals. One to six",
    "spellings of a fault a rule, written for this, in functions of other people: the figures say how rules stand up",
    "there, not how they stand up to other people's spellings. 'others' are look-alikes on which another rule has a",
    "finding: nearly all AWP407 (a decode loop written by hand with a cache that grows is one, whatever else is right",
    "in it), AWP306 (work on what the loop does not write) and AWP803 (a handler without a queue). A star: a rule that",
    "readers turned down and that is hidden at the default level, measured at its own. What is a waste in one place",
    "alone is written there, and its look-alikes where it is none: small tables (AWP306) and caches that grow (AWP506)",
    "in layers that are handed the cache, weights of attention (AWP505) in layers of an encoder, a cast or a move",
    "(AWP606) that is taken back, copies (AWP607) of tensors in a layer and of the cache in a decode loop.",
)


def _keep(arguments: argparse.Namespace, rows: list[str]) -> None:
    """Write the table; rows of rules that were not measured now stay as they are."""
    old = arguments.save.read_text(encoding="utf-8").split("\n") if arguments.save.exists() else []
    kept = {row[:6]: row for row in old if re.match(r"AWP\d{3}[ *]", row)}
    kept.update({row[:6]: row for row in rows})
    when = datetime.date.today().isoformat()
    told = re.search(r"__version__ = \"([^\"]+)\"", (arguments.folder / "__init__.py").read_text(encoding="utf-8"))
    version = told.group(1) if told else "?"
    command = "python benchmarks/precision/inject.py FOLDER RULES"
    head = [
        f"{when}, 2-core x86 machine, transformers {version}, seed {arguments.seed}, default level",
        f"{command} --sites {arguments.sites} --save benchmarks/results/inject.txt",
        "",
        *_LEGEND,
        "",
        "rule    faults found              look-alikes false alarms       others",
    ]
    arguments.save.write_text("\n".join([*head, *(kept[key] for key in sorted(kept))]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
