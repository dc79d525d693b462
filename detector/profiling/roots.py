"""Which of the six root causes stands behind a cause of idle time."""

ROOTS = {
    "sync": "runtime",
    "launch": "runtime",
    "host": "runtime",
    "device": "runtime",
    "copy": "memory",
    "communication": "communication",
}
