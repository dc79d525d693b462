"""One thread that works jobs off and hands pictures back."""

from __future__ import annotations

import logging
import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

import torch

from imageserve.config import Job
from imageserve.pipeline import Pipeline

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Picture:
    """An image as PPM, and how long its job took."""

    job: int
    data: bytes
    seconds: float
    brightness: float


def to_ppm(pixels: torch.Tensor) -> bytes:
    """A (3, height, width) uint8 tensor on the host as a binary PPM."""
    _, height, width = pixels.shape
    return b"P6 %d %d 255\n" % (width, height) + bytes(pixels.permute(1, 2, 0).contiguous().untyped_storage())


class Worker(threading.Thread):
    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(name="worker", daemon=True)
        self.pipeline = pipeline
        self.jobs: queue.Queue[tuple[Job, Future[list[Picture]]] | None] = queue.Queue()

    def submit(self, job: Job) -> Future[list[Picture]]:
        future: Future[list[Picture]] = Future()
        self.jobs.put((job, future))
        return future

    def stop(self) -> None:
        self.jobs.put(None)
        self.join()

    def run(self) -> None:
        while (item := self.jobs.get()) is not None:
            job, future = item
            try:
                future.set_result(self.work(job))
            except Exception as error:
                future.set_exception(error)

    def work(self, job: Job) -> list[Picture]:
        started = time.perf_counter()
        images = self.pipeline(job, self.progress).cpu()
        seconds = time.perf_counter() - started
        pictures = []
        for image in images:
            dark = image[image < 8]
            if dark.numel() > image.numel() // 2:
                logger.warning("job %d: more than half of a picture is black", job.number)
            brightness = image.float().mean().item()
            pictures.append(Picture(job.number, to_ppm(image), seconds, brightness))
        return pictures

    def progress(self, done: int, total: int) -> None:
        if done == total or done % 10 == 0:
            logger.info("step %d of %d", done, total)
