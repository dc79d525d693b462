"""Parameters that copy themselves for every request, all but the parts that were found too expensive."""

import copy

from fastapi import FastAPI

app = FastAPI()


class SamplingParams:
    def __init__(self, processors: list, stop: list[str]):
        self.processors = processors
        self.stop = stop

    def clone(self) -> "SamplingParams":
        kept = {id(processor): processor for processor in self.processors}
        return copy.deepcopy(self, memo=kept)  # expect: AWP607


class PoolingParams:
    def __init__(self, dimensions: int):
        self.dimensions = dimensions

    def clone(self) -> "PoolingParams":
        return copy.deepcopy(self)  # expect[low]: AWP607


class ChosenParams:
    def __init__(self, processors: list, fresh: bool):
        self.processors = processors
        self.fresh = fresh

    def clone(self) -> "ChosenParams":
        if self.fresh:
            return copy.copy(self)
        return copy.deepcopy(self, memo={id(processor): processor for processor in self.processors})  # expect[low]: AWP607


SAMPLING = SamplingParams([], [])
POOLING = PoolingParams(256)
CHOSEN = ChosenParams([], False)


@app.post("/complete")
def complete(prompt: str) -> list:
    return [prompt, SAMPLING.clone(), POOLING.clone(), CHOSEN.clone()]
