"""Work in threads and executors, thread-pool handlers, asynchronous clients and engines, streams."""

import asyncio

import httpx
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm import AsyncLLMEngine, SamplingParams

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("lm")
model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
engine = AsyncLLMEngine.from_engine_args(None)


def run(prompt: str) -> str:
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    return tokenizer.decode(model.generate(**inputs)[0])


@app.post("/sync")
def sync_handler(prompt: str) -> str:
    return run(prompt)


@app.post("/thread")
async def thread(prompt: str) -> str:
    return await asyncio.to_thread(run, prompt)


@app.post("/pool")
async def pool(prompt: str) -> str:
    loop = asyncio.get_running_loop()
    first = await loop.run_in_executor(None, run, prompt)
    return first + await run_in_threadpool(run, prompt)


@app.post("/fetch")
async def fetch(url: str) -> str:
    async with httpx.AsyncClient() as client:
        response = await client.get(url)
    await asyncio.sleep(0.1)
    return response.text


@app.post("/engine")
async def stream_engine(prompt: str) -> str:
    text = ""
    results = engine.generate(prompt, SamplingParams(max_tokens=16), "id")
    async for output in results:
        text = output.outputs[0].text
    return text


def pieces(prompt: str):
    yield run(prompt)


@app.post("/stream")
async def stream(prompt: str) -> StreamingResponse:
    return StreamingResponse(pieces(prompt))
