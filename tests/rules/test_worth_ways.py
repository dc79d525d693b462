"""Ways that ordinary inference does not take are hidden; the same code on the others is not."""

from __future__ import annotations

import pytest
from judged import levels

SCHEDULE = """
    import torch
    from diffusers import ConfigMixin, SchedulerMixin

    class Decoding(SchedulerMixin, ConfigMixin):
        def set_timesteps(self, num_inference_steps: int, device: str = "cuda") -> None:
            if num_inference_steps {limit}:
                raise ValueError("other numbers of steps are not possible")
            self.timesteps = torch.tensor([1008, 512], dtype=torch.long, device=device)

        def step(self, model_output: torch.Tensor, timestep: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
            index = torch.where(self.timesteps == timestep)[0]
            if index == len(self.timesteps) - 1:
                return sample
            return sample + model_output
"""


@pytest.mark.parametrize(("limit", "hidden"), [("!= 2", True), ("!= 50", False), ("< 2", False)])
def test_a_schedule_of_two_steps(limit: str, hidden: bool) -> None:
    assert ("medium" not in levels(SCHEDULE.format(limit=limit), "AWP102")) is hidden


PICKING = """
    import numpy as np
    import torch

    @torch.inference_mode()
    def compose(model: torch.nn.Module, notes: torch.Tensor, top_p{default}, max_new_tokens: int = 512) -> list:
        found = []
        model = model.to("cuda").eval()
        for _ in range(max_new_tokens):
            logits = model(notes.to("cuda"))[0, -1]
            if top_p {test}:
                logits = logits.detach().cpu().numpy()
                best = np.argsort(logits)[-1]
                found.append(best)
        return found
"""


@pytest.mark.parametrize(
    ("default", "test", "hidden"),
    [(": float | None = None", "is not None", True), (": float = 0.9", "is not None", False),
     (": float | None = None", "is None", False)],
)  # fmt: skip
def test_an_option_to_pick_by(default: str, test: str, hidden: bool) -> None:
    code = PICKING.format(default=default, test=test)
    assert (levels(code, "AWP111") <= {"low"}) is hidden


def test_where_a_mask_or_the_ids_are_left_out() -> None:
    """A parameter without a default is given by every call; generation gives masks and ids."""
    code = """
        import torch

        class Attention(torch.nn.Module):
            def forward(self, hidden_states: torch.Tensor, {name}):
                if {name} is None:
                    {name} = torch.ones(hidden_states.shape[0], hidden_states.shape[1]).to(hidden_states.device)
                return hidden_states * {name}[..., None]

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList([Attention() for _ in range(8)])

            def forward(self, hidden_states: torch.Tensor, attention_mask=None):
                for layer in self.layers:
                    hidden_states = layer(hidden_states, attention_mask)
                return hidden_states
    """
    assert levels(code.format(name="query_attn_mask"), "AWP602") <= {"low"}
    assert levels(code.format(name="input_ids"), "AWP602") <= {"low"}
    assert levels(code.format(name="table"), "AWP602") & {"medium", "high"}
