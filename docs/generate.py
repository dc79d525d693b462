"""Pages of the site that are made and not written: MkDocs calls the ``on_…`` functions while it builds.

The start page is the README; the reference comes from the options' parsers, the settings' class and the report's
schema; figures are the files of ``benchmarks/results`` as they are; each app's README is a page. Links in pages that
lead to files outside ``docs`` lead to these pages instead, so that one text is right in the repository and on the site.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from awp_lint.detector.bot.cli import build_parser as bot_parser
from awp_lint.detector.config import DEFAULT_EXCLUDES, Settings
from awp_lint.detector.options import build_parser
from awp_lint.rules.docs import FAMILIES
from awp_lint.rules.registry import all_rules

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
APPS = ROOT / "corpus" / "apps"
SCHEMA = ROOT / "detector" / "reporting" / "schema" / "awp-lint-1.json"

#: Files of the repository that are pages of the site, by their path from its root.
_COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/precision/reading.md": "figures/reading.md",
    "benchmarks/precision/cases.md": "figures/cases.md",
    "benchmarks/precision/configs.md": "figures/configs.md",
    **{f"corpus/apps/{path.parent.name}/README.md": f"apps/{path.parent.name}.md" for path in APPS.glob("*/README.md")},
}
_FOLDERS = {
    "benchmarks/results": "figures/index.md",
    "benchmarks/precision": "figures/reading.md",
    "corpus/apps": "apps/index.md",
}

_SETTINGS = {
    "select": "rule ids or prefixes that are on",
    "ignore": "... that are off; the longer prefix decides, `ignore` wins a tie",
    "extend-select": "on beside `select`",
    "confidence": "the lowest shown: high, medium or low",
    "include": "patterns of files that are read",
    "exclude": "folders and patterns that are not, beside the built-in ones",
    "per-file-ignores": "a table: pattern of files → rule ids",
    "entry-points": 'a table: pattern of functions → how often they run, such as `"request×token"`',
    "jobs": "worker processes; 0: one a core",
    "ledger": "whether predictions of runs are kept on this machine",
    "baseline": "a file of known findings that are not shown",
    "cache": "command line only (`--no-cache`)",
}

_SETTINGS_PAGE = """\
# Settings

In `[tool.awp-lint]` of `pyproject.toml`, or at the top of `awp-lint.toml`. The nearest such file above the working
folder holds; options of the command line win. An unknown name or a wrong type ends the run with a line that names file
and key. `--show-settings` prints what is in force.

    [tool.awp-lint]
    confidence = "high"
    target-torch = "2.6"

    [tool.awp-lint.per-file-ignores]
    "tools/*" = ["AWP1"]

    [tool.awp-lint.entry-points]
    "*.on_message" = "request"

| name | default | meaning |
|---|---|---|
{rows}

The table `llm` is described with the [language model](../llm.md).
"""


# what MkDocs calls ---------------------------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the sections of the navigation whose pages are made."""
    rules: list[Any] = ["rules/index.md"]
    for family, title in FAMILIES.items():
        pages = [{f"{rule.id} {rule.name}": f"rules/{rule.id}.md"} for rule in all_rules() if rule.id[3] == family]
        rules.append({title: pages})
    made = {
        "Rules": rules,
        "Figures": ["figures/index.md", *sorted(uri for uri in _pages() if uri.startswith("figures/"))],
        "Apps": ["apps/index.md", *sorted(uri for uri in _pages() if uri.startswith("apps/"))],
    }
    assert config.nav is not None
    for section in config.nav:
        (title,) = section
        section[title] = made.get(title, section[title])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for uri, text in _pages().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that lead out of ``docs``, led to the pages of what they lead to."""
    if page.file.generated_by:
        return markdown
    return _led(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


# pages ---------------------------------------------------------------------------------------------------------------


def _pages() -> dict[str, str]:
    """Every page that is made, by its path on the site."""
    pages = {uri: _led((ROOT / path).read_text(encoding="utf-8"), path, uri) for path, uri in _COPIED.items()}
    for path in sorted(RESULTS.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        pages[f"figures/{path.stem}.md"] = f"# {path.stem}\n\n```text\n{text.rstrip()}\n```\n"
    pages["reference/command-line.md"] = _command_line()
    pages["reference/settings.md"] = _settings()
    pages["reference/json.md"] = _schema()
    return pages


def _led(markdown: str, source: str, uri: str) -> str:
    """``markdown`` of a file of the repository as it stands at ``uri`` of the site.

    Raises ValueError for a link to a file of the repository that is no page of the site.
    """

    def lead(match: re.Match[str]) -> str:
        target, mark, anchor = match[1].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path.startswith("docs/"):
            page = path.removeprefix("docs/")
        elif path.startswith("benchmarks/results/") and path.endswith(".txt"):
            page = f"figures/{posixpath.basename(path).removesuffix('.txt')}.md"
        elif path in _COPIED or path in _FOLDERS:
            page = _COPIED.get(path) or _FOLDERS[path]
        else:
            raise ValueError(f"{source}: {match[1]} leads to no page of the site")
        return f"]({_relative(page, uri)}{mark}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", lead, markdown)


def _relative(page: str, uri: str) -> str:
    return posixpath.relpath(page, posixpath.dirname(uri) or ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A table a group. argparse has no other way to its groups than this attribute."""
    for group in parser._action_groups:
        if not group._group_actions:
            continue
        yield f"\n### {group.title[:1].upper()}{group.title[1:]}\n" if group.title else ""
        yield "| option | meaning |\n|---|---|"
        for action in group._group_actions:
            names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar}`"
            value = "" if action.nargs == 0 or not action.option_strings else _value(action)
            yield f"| {_cell(names + value)} | {_cell((action.help or '') % {'default': action.default})} |"


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return " " + ", ".join(f"`{choice}`" for choice in action.choices)
    return f" `{action.metavar or action.dest.upper()}`"


def _command_line() -> str:
    lines = ["# Command line", "", "Made from the programs' own options."]
    for parser in (build_parser(), bot_parser()):
        lines += ["", f"## {parser.prog}", "", f"    {parser.usage}", "", parser.description or ""]
        lines += [*_options(parser), "", parser.epilog or ""]
    lines += [
        "",
        "The first `--profile` before any `--` ends awp-lint's options: everything behind it is your command, "
        "untouched. `--agent` does the same and takes no option before it.",
    ]
    return "\n".join(lines) + "\n"


def _settings() -> str:
    rows = []
    for field in dataclasses.fields(Settings):
        name = field.name.replace("_", "-")
        if name == "target":
            rows += [
                f"| `target-{what}` | from the project's requirement files, else {default} | {meaning} |"
                for what, default, meaning in (
                    ("torch", "the newest", "version that the code will run with"),
                    ("transformers", "the newest", "version that the code will run with"),
                    ("device", "cuda", "cuda, rocm, mps or cpu"),
                )
            ]
            continue
        default = getattr(Settings(), field.name)
        if name == "exclude":
            default = DEFAULT_EXCLUDES
        shown = getattr(default, "value", default)
        shown = ", ".join(shown) if isinstance(shown, tuple) else str(shown)
        rows.append(f"| `{name}` | {_cell(f'`{shown}`' if shown else '')} | {_cell(_SETTINGS[name])} |")
    return _SETTINGS_PAGE.format(rows="\n".join(rows))


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " or ".join(_type(choice) for choice in schema[key])
    kind = schema.get("type", "anything")
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and isinstance(schema.get("items"), dict):
        kinds = [f"list of {_type(schema['items'])}" if kind == "array" else kind for kind in kinds]
    return " or ".join(kinds)


def _fields(schema: dict[str, Any], within: str = "") -> Iterator[str]:
    for name, value in schema.get("properties", {}).items():
        always = "" if name in schema.get("required", ()) else "may be left out"
        yield f"| `{within}{name}` | {_cell(_type(value))} | {always} |"
        yield from _fields(value, f"{within}{name}.")


def _schema() -> str:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    lines = [
        "# JSON report",
        "",
        "`--format json` writes one object of the schema `awp-lint/1`, which ships with the package "
        "(`awp_lint/detector/reporting/schema/awp-lint-1.json`). Fields may be added; none changes its meaning "
        "within a version. Times are milliseconds a unit (step, request, call or run), shares are percent where the "
        "name says so.",
        "",
        "    awp-lint src/ --format json | jq -r '.findings[] | [.rule, .path, .line, .message] | @tsv'",
    ]
    parts = {"The report": schema, **schema["$defs"]}
    for name, part in parts.items():
        lines += ["", f"## {name}", "", "| field | type | |", "|---|---|---|", *_fields(part)]
    return "\n".join(lines) + "\n"
