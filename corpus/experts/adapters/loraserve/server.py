"""An asyncio server that speaks one JSON object a line, and gathers requests into batches."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from loraserve.engine import Engine, Request


@dataclass
class Waiting:
    request: Request
    done: asyncio.Future[Request] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class LoraServer:
    def __init__(self, engine: Engine, adapters: list[str], batch: int, window: float) -> None:
        self.engine = engine
        self.adapters = set(adapters)
        self.batch = batch
        self.window = window
        self.queue: asyncio.Queue[Waiting] = asyncio.Queue()

    async def gather(self) -> list[Waiting]:
        """Wait for a request, then for up to ``window`` seconds for more to share its batch."""
        waiting = [await self.queue.get()]
        loop = asyncio.get_running_loop()
        until = loop.time() + self.window
        while len(waiting) < self.batch and (left := until - loop.time()) > 0:
            try:
                waiting.append(await asyncio.wait_for(self.queue.get(), left))
            except asyncio.TimeoutError:
                break
        return sorted(waiting, key=lambda item: item.request.number)

    async def work(self) -> None:
        """Decode batches for ever."""
        while True:
            waiting = await self.gather()
            await asyncio.to_thread(self.engine.run, [item.request for item in waiting])
            for item in waiting:
                item.done.set_result(item.request)

    def parse(self, line: bytes) -> Request:
        body = json.loads(line)
        adapter = str(body.get("adapter", ""))
        if adapter and adapter not in self.adapters:
            raise ValueError(f"no adapter {adapter}")
        return Request(
            number=int(body["number"]),
            adapter=adapter,
            prompt=list(str(body["prompt"]).encode()),
            limit=int(body.get("limit", 32)),
            temperature=float(body.get("temperature", 1.0)),
            top_k=int(body.get("top_k", 0)),
        )

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: requests as lines, answers as lines."""
        while line := await reader.readline():
            try:
                item = Waiting(self.parse(line))
            except (KeyError, ValueError) as error:
                writer.write(json.dumps({"error": str(error)}).encode() + b"\n")
                continue
            await self.queue.put(item)
            request = await item.done
            writer.write(json.dumps({"number": request.number, "tokens": request.output}).encode() + b"\n")
            await writer.drain()
        writer.close()
