"""A load for the server: waves of clients that ask at the same time and read their streams to the end."""

from __future__ import annotations

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

QUESTIONS = (
    "How do I reset my password?",
    "What does the premium plan cost?",
    "Can I export my data as a table?",
    "Why is my invoice twice as high as last month?",
    "Which regions do you run in?",
    "How long are backups kept?",
    "Does the mobile app work without a network?",
    "Who can see the documents that I share?",
)

NOTES = (
    "Passwords are reset from the sign-in page; the link in the mail is valid for one hour.",
    "The premium plan is billed by the month and by the seat.",
    "Exports are made in the background and kept for seven days.",
    "Invoices list usage by project; a project without an owner is billed to the organisation.",
    "Data stays in the region chosen when the organisation was made.",
    "Backups are taken every night and kept for thirty days.",
    "Documents opened in the last week can be read without a network.",
    "A shared document is visible to everybody who has its link, unless it was limited to members.",
)


@dataclass
class Answer:
    id: int
    text: str
    tokens: int
    first_token: float
    total: float


def ask(address: tuple[str, int], number: int, max_tokens: int) -> Answer:
    """Send one question and read the whole answer; raises RuntimeError when the server refuses or fails."""
    body = {
        "id": number,
        "question": QUESTIONS[number % len(QUESTIONS)],
        "max_tokens": max(1, max_tokens - 4 * (number % 4)),
        "temperature": 0.7 + 0.1 * (number % 3),
        "logprobs": 3 if number % 4 == 1 else 0,
    }
    start = time.perf_counter()
    connection = http.client.HTTPConnection(*address, timeout=300)
    connection.request("POST", "/v1/chat", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"request {number}: {response.status} {response.read().decode()}")
    text = ""
    tokens = 0
    first = 0.0
    for line in response:
        event = json.loads(line)
        if "error" in event:
            raise RuntimeError(f"request {number}: {event['error']}")
        first = first or time.perf_counter() - start
        text += event.get("text", "")
        tokens = event.get("tokens", tokens)
    connection.close()
    return Answer(number, text, tokens, first, time.perf_counter() - start)


def run_load(address: tuple[str, int], requests: int, wave: int, max_tokens: int) -> list[Answer]:
    """Ask ``requests`` questions, ``wave`` at a time; answers in the order of their numbers."""
    answers: list[Answer] = []
    with ThreadPoolExecutor(wave) as pool:
        for start in range(0, requests, wave):
            numbers = range(start, min(start + wave, requests))
            answers += pool.map(lambda number: ask(address, number, max_tokens), numbers)
    return answers
