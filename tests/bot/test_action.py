"""The action's steps, carried out as a runner does it: inputs by the environment, one bash a step."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from botworld import FAULTY, World, git
from fake_github import FakeGitHub

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())


def steps(inputs: dict[str, str], environment: dict[str, str], folder: Path, skip: tuple[str, ...] = ()) -> list[int]:
    """Run the action's steps in a folder; their exit codes. The job's token is ``t-job``."""
    known = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
    assert set(inputs) <= set(known)
    values = {**known, **inputs}

    def filled(text: str) -> str:
        found = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m.group(1)], str(text))
        return found.replace("${{ github.token }}", "t-job")

    codes = []
    for step in ACTION["runs"]["steps"]:
        condition = re.fullmatch(r"inputs\.(\w+) == '(\w+)'", step.get("if", "inputs.mode == 'x'"))
        assert condition is not None
        if ("if" in step and values[condition.group(1)] != condition.group(2)) or step["name"] in skip:
            continue
        own = {name: filled(filled(value)) for name, value in step.get("env", {}).items()}
        script = folder.parent / "step.sh"
        script.write_text(step["run"])
        run = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder,
            env={**os.environ, **environment, **own},
            check=False,
        )
        codes.append(run.returncode)
        if run.returncode:
            break
    return codes


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """A runner's environment, in which the first step has installed this checkout."""
    folder = tmp_path / "temp" / "awp-lint" / "bin"
    folder.mkdir(parents=True)
    for name, module in (("awp-lint", "awp_lint.detector.cli"), ("awp-lint-bot", "awp_lint.detector.bot.cli")):
        path = folder / name
        path.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        path.chmod(0o755)
    (folder / "python").symlink_to(sys.executable)
    return {"RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}


def test_no_input_is_ever_a_part_of_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
        assert step["shell"] == "bash"


def test_comment(hub: FakeGitHub, world: World, runner: dict[str, str], tmp_path: Path) -> None:
    hub.push(world.commit(FAULTY))
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    environment = {
        **runner,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "acme/server",
        "GITHUB_API_URL": hub.url,
    }
    hostile = {"max-comments": "2", "paths": "srv $(touch no) ;touch no"}
    assert steps(hostile, environment, world.clone, skip=("install",)) == [0]
    assert len(hub.review_comments) == 2 and not (world.clone / "no").exists()
    assert {c.authorization for c in hub.calls} == {"token t-job"}
    assert "### awp-lint: 3 new findings" in Path(runner["GITHUB_STEP_SUMMARY"]).read_text()
    assert steps({"fail-on": "medium"}, environment, world.clone, skip=("install",)) == [1]


def test_report(world: World, runner: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    silent = FAULTY["srv/model.py"].replace(".to(ids.device)", ".to(ids.device)  # awp: ignore[AWP602] small")
    world.commit({**FAULTY, "srv/model.py": silent})
    git(world.clone, "fetch", "-q", "origin", "change")
    git(world.clone, "checkout", "-q", "FETCH_HEAD")
    assert steps({"mode": "report"}, runner, world.clone, skip=("install",)) == [0]
    log = json.loads((world.clone / "awp-lint.sarif").read_text())
    assert sorted(r["ruleId"] for r in log["runs"][0]["results"]) == ["AWP102", "AWP105"]
    assert "| AWP105 | `srv/decode.py:12` |" in Path(runner["GITHUB_STEP_SUMMARY"]).read_text()
    assert capfd.readouterr().out.count("::warning file=srv/decode.py") == 2
    assert steps({"mode": "report", "fail-on": "low"}, runner, world.clone, skip=("install",)) == [1]


def test_the_gitlab_template_is_yaml_and_calls_what_exists() -> None:
    template = yaml.safe_load((ROOT / "docs" / "ci" / "awp-lint.gitlab-ci.yml").read_text())
    assert template["awp-lint:comments"]["variables"]["GIT_DEPTH"] == "0"
    assert template["awp-lint:quality"]["artifacts"]["reports"]["codequality"] == "gl-code-quality-report.json"


def test_the_hooks_call_options_that_exist() -> None:
    from awp_lint.detector.options import build_parser

    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["awp-lint", "awp-lint-fix", "awp-lint-all"]
    for hook in hooks:
        command, *words = hook["entry"].split()
        assert command == "awp-lint" and hook["pass_filenames"] is False
        build_parser().parse_args(words)
