"""A comment gives a reason: shown at low confidence."""

from vllm import LLM

llm = LLM(
    model="lm",
    # graph capture of this model crashes on the present driver
    enforce_eager=True,  # expect[low]: AWP804
)
