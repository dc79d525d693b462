"""The second stage of a check on forks: from a finished workflow run to its pull request.

A run on a fork's pull request has a token that may only read. A second workflow, started by ``workflow_run``, belongs
to the base repository and may write. What it knows about the first one comes from GitHub alone: nothing that the first
run made, such as a file with a number, decides which pull request is commented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awp_lint.detector.bot.host import BotError


def pull_of_run(run: Mapping[str, Any], repository: str, base_url: str, token: str) -> int | None:
    """The open pull request whose head a ``workflow_run`` ran on; None where there is none.

    GitHub lists pull requests in the event except those from forks; these are looked for by the head's branch and must
    have the very commit of the run. Raises :class:`BotError`.
    """
    head = run.get("head_sha")
    for listed in run.get("pull_requests") or ():
        if isinstance(listed, dict) and isinstance(listed.get("number"), int):
            return int(listed["number"])
    owner = ((run.get("head_repository") or {}).get("owner") or {}).get("login")
    branch = run.get("head_branch")
    if not (isinstance(owner, str) and isinstance(branch, str) and isinstance(head, str)):
        return None
    import github

    from awp_lint.detector.bot.github import told

    client = github.Github(
        auth=github.Auth.Token(token), base_url=base_url.rstrip("/"), user_agent="awp-lint-bot", lazy=True
    )
    with told("the run's pull request"):
        pulls = client.get_repo(repository).get_pulls(state="open", head=f"{owner}:{branch}")
        found = [pull.number for pull in pulls if pull.head.sha == head]
    if len(found) > 1:
        raise BotError(f"several open pull requests have the head {head[:12]}: give --pr N")
    return found[0] if found else None
