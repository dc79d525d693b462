from __future__ import annotations

import pytest

from awp_lint.rules.serving.configfiles.screening import WORDS, may_matter


@pytest.mark.parametrize("word", WORDS)
def test_every_word_matters(word: bytes) -> None:
    assert may_matter(b"a: 1\n" + word + b": 2\n")


@pytest.mark.parametrize("text", [b"", b"replicas: 3\nbatch: 2\nmemory: 1Gi\n", b'{"max_position_embeddings": 4096}'])
def test_most_files_do_not(text: bytes) -> None:
    assert not may_matter(text)
