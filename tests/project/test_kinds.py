from __future__ import annotations

import pytest

from awp_lint.detector.project.kinds import Kind, is_shell, kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a/serve.sh", Kind.SHELL), ("a/entrypoint", Kind.SHELL), ("Dockerfile", Kind.DOCKER),
        ("docker/Dockerfile.cuda-12", Kind.DOCKER), ("Dockerfile_rocm", Kind.DOCKER), ("vllm.dockerfile", Kind.DOCKER),
        ("k8s/deploy.yml", Kind.YAML), ("engine.json", Kind.JSON), ("a.py", Kind.PYTHON), ("n.ipynb", Kind.PYTHON),
        ("Dockerfile.py", Kind.PYTHON), ("README.md", Kind.PYTHON), ("dockerfiles/x", Kind.PYTHON),
    ],
)  # fmt: skip
def test_kind_of_a_name(path: str, kind: Kind) -> None:
    assert kind_of(path) is kind


def test_first_line_of_a_script() -> None:
    assert is_shell(b"#!/usr/bin/env bash\n") and is_shell(b"#!/bin/sh -e\nx")
    assert not is_shell(b"#!/usr/bin/env python3\n# not bash") and not is_shell(b"print(1)\n#!/bin/sh")
