"""Coroutine routes that block: the model, a decoder of images, the network, sleeping, a helper that runs the model."""

import io
import time

import requests
import soundfile
import torch
from fastapi import FastAPI, UploadFile
from PIL import Image
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

app = FastAPI()
tokenizer = AutoTokenizer.from_pretrained("lm")
model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()
classifier = pipeline("text-classification", model="classifier", device=0)


@app.post("/complete")
async def complete(prompt: str) -> str:
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    tokens = await asyncio.to_thread(model.generate, **inputs, max_new_tokens=64)
    return tokenizer.decode(tokens[0])


@app.post("/classify")
async def classify(text: str) -> list:
    return await asyncio.to_thread(classifier, text)


@app.post("/caption")
async def caption(url: str) -> str:
    raw = (await asyncio.to_thread(requests.get, url, timeout=10)).content
    image = Image.open(io.BytesIO(raw)).convert("RGB")
    return str(image.size)


@app.post("/transcribe")
async def transcribe(file: UploadFile) -> dict:
    data = await file.read()
    samples, rate = await asyncio.to_thread(soundfile.read, io.BytesIO(data))
    return {"seconds": len(samples) / rate}


def answer(prompt: str) -> str:
    inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
    return tokenizer.decode(model.generate(**inputs)[0])


@app.post("/chat")
async def chat(prompt: str) -> str:
    text = await asyncio.to_thread(answer, prompt)
    return text.strip()


@app.get("/slow")
async def slow() -> str:
    await asyncio.sleep(1.0)
    return "ok"


async def respond(prompt: str) -> str:
    with torch.inference_mode():
        logits = model(torch.tensor([[1, 2, 3]], device="cuda")).logits
    return str(logits.argmax(-1)) + prompt


@app.websocket("/ws")
async def socket(websocket) -> None:
    await websocket.send_text(await respond(await websocket.receive_text()))
