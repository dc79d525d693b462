"""A worker object behind a route, whose class is defined elsewhere."""

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from serving import load_worker

app = FastAPI()
worker = load_worker()


@app.post("/worker_generate")
async def api_generate(request: Request):
    params = await request.json()
    output = worker.generate_gate(params)  # expect: AWP801
    return JSONResponse(output)


@app.post("/worker_embed")
async def api_embed(request: Request):
    params = await request.json()
    return {"embedding": worker.embed_text(params["texts"]).tolist()}  # expect: AWP801
