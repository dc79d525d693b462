"""AWP902 object-collective."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, hot_frequency, often, short, sureness
from awp_lint.rules.communication.collectives import BARRIER, OBJECT, collective, hot_here


class ObjectCollective(Rule):
    """Pickled objects between ranks, or a barrier, on a hot path."""

    id = "AWP902"
    name = "object-collective"
    root_cause = RootCause.COMMUNICATION
    cost_us = 500.0
    event = Event.HOST
    mark = MarkKind.CALL
    words = (b"distributed",)
    nodes = (ast.Call,)
    calls = OBJECT | BARRIER

    summary = "Python objects or a barrier between ranks on a hot path"
    what = """
        `all_gather_object`, `broadcast_object_list`, `gather_object`, `scatter_object_list`, `barrier` and
        `monitored_barrier` in code that runs for every step, token, layer or item.
        """
    why = """
        An object collective pickles, exchanges the sizes, reads them back on the host, exchanges the bytes and
        unpickles: several collectives and at least two waits for the device on every rank. A barrier makes all ranks
        wait for the slowest, and the host with them.
        """
    fine = """
        - Set-up, saving, shutting down, training.
        - Helpers that are called from set-up and from steps alike: low confidence, unless the function itself holds the
          loop or is a `forward`, `generate` or `step`.
        - Once a request: a new prompt handed to the other ranks.
        """
    safety = """
        No automatic rewrite: send tensors of a fixed layout (`broadcast` of one packed integer tensor), let every rank
        derive the value, or use a queue in shared memory. A barrier between two collectives orders nothing that they do
        not order already.
        """
    references = ("https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.broadcast_object_list",)
    bad = """
        import torch
        import torch.distributed as dist

        @torch.inference_mode()
        def generate(model: torch.nn.Module, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            tokens = tokens.to("cuda")
            for _ in range(max_new_tokens):
                tokens = model(tokens).argmax(-1)
                finished = [None]
                dist.broadcast_object_list(finished, src=0)
                dist.barrier()
            return tokens
        """
    good = """
        import torch
        import torch.distributed as dist

        @torch.inference_mode()
        def generate(model: torch.nn.Module, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            tokens = tokens.to("cuda")
            dist.barrier()
            for _ in range(max_new_tokens):
                tokens = model(tokens).argmax(-1)
                dist.broadcast(tokens, src=0)
            return tokens
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        name = collective(node, view)
        if name is None or name not in OBJECT | BARRIER:
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        if name in BARRIER:
            message = f"`{short(node.func, 40)}()` makes every rank wait for the slowest {often(frequency)}"
            action = "drop it: the collectives around it order the ranks already"
        else:
            message = f"`{short(node.func, 40)}(...)` pickles objects and waits for their sizes {often(frequency)}"
            action = "send one packed tensor, or let every rank derive the value"
        yield Candidate(
            node=node,
            message=message.rstrip(),
            action=action,
            confidence=sureness(view, node, frequency) if hot_here(node, view) else Confidence.LOW,
            frequency=frequency,
            why=frequency_reason(frequency),
        )
