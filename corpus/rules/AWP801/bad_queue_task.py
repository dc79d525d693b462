"""A task that works batches off a queue, and blocks the event loop with each of them."""

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
        waiting = [await self.queue.get()]
        while not self.queue.empty():
            waiting.append(self.queue.get_nowait())
        return waiting

    async def work(self) -> None:
        while True:
            waiting = await self.gather()
            answers = self.engine.run([item[0] for item in waiting])  # expect: AWP801
            for item, answer in zip(waiting, answers):
                item[1].set_result(answer)


def main() -> None:
    server = Server(Engine(nn.Linear(8, 8).to("cuda").eval()))
    asyncio.run(server.work())


if __name__ == "__main__":
    main()
