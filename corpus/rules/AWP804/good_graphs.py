"""Graphs on, a value from elsewhere, a keyword of another class, a test."""

import argparse

from vllm import LLM

options = argparse.Namespace(eager=False)
llm = LLM(model="lm")
other = LLM(model="lm", enforce_eager=False)
third = LLM(model="lm", enforce_eager=options.eager)
settings = dict(enforce_eager=True)


def test_engine():
    assert LLM(model="tiny", enforce_eager=True) is not None
