"""An engine with continuous batching behind the handler."""

from fastapi import FastAPI
from vllm import AsyncEngineArgs, AsyncLLMEngine, SamplingParams

app = FastAPI()
engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model="lm"))


@app.post("/complete")
async def complete(prompt: str) -> str:
    text = ""
    async for output in engine.generate(prompt, SamplingParams(max_tokens=64), "id"):
        text = output.outputs[0].text
    return text
