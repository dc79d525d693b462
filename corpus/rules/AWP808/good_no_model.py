"""A web service without a model may reload as it likes."""

import uvicorn
from fastapi import FastAPI

app = FastAPI()

if __name__ == "__main__":
    uvicorn.run("server:app", reload=True, workers=4)
