"""Deep copies that the language asks for, and shallow ones."""

import copy

from fastapi import FastAPI

app = FastAPI()


class Params:
    def __init__(self, processors: list, stop: list[str]):
        self.processors = processors
        self.stop = stop

    def clone(self) -> "Params":
        found = copy.copy(self)
        found.stop = list(self.stop)
        return found


DEFAULT = Params([], [])


@app.post("/complete")
def complete(prompt: str) -> list:
    return [prompt, DEFAULT.clone()]
