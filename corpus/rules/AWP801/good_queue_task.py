"""A task that hands its batches to a thread."""

import asyncio

import torch
from torch import nn


class Engine:
    def __init__(self, model: nn.Module):
        self.model = model

    @torch.inference_mode()
    def run(self, batch: list[list[int]]) -> list[int]:
        return self.model(torch.tensor(batch, device="cuda")).argmax(-1).tolist()


class Server:
    def __init__(self, engine: Engine):
        self.engine = engine
        self.queue: asyncio.Queue = asyncio.Queue()

    async def gather(self) -> list:
        return [await self.queue.get()]

    async def work(self) -> None:
        while True:
            waiting = await self.gather()
            answers = await asyncio.to_thread(self.engine.run, [item[0] for item in waiting])
            for item, answer in zip(waiting, answers):
                item[1].set_result(answer)


def main() -> None:
    server = Server(Engine(nn.Linear(8, 8).to("cuda").eval()))
    asyncio.run(server.work())


if __name__ == "__main__":
    main()
