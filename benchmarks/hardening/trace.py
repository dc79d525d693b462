"""Traces nobody wrote, through the reader: coverage-guided fuzzing with atheris, for a fixed time.

    pip install atheris        (Python 3.11)
    python benchmarks/hardening/trace.py [--seconds 300]

Inputs are bytes as they are, and traces in Kineto's layout whose fields, gaps and cuts the input chooses. The reader
may say that a file is no trace, and nothing else.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["awp_lint.detector.profiling"]):
    from awp_lint.detector.profiling import kineto

_NUMBERS = (
    "0", "1", "7", "-1", "10.5", "0.001", "1e3", "1E400", "-1e-400", "NaN", "Infinity", "null", "true", '"7"', "[1]",
    "{}", "99999999999999999999999", "9223372036854775807", "-9223372036854775808", "4294967296", "65536", "1.", ".5",
    "0x10", "1690000000000000.125", "", "--1", "1_000",
)  # fmt: skip
_CATEGORIES = (
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_runtime",
    "cuda_driver",
    "cpu_op",
    "user_annotation",
    "Kernel",
    "",
)
_NAMES = (
    "k",
    "cudaLaunchKernel",
    "aten::add",
    'quote\\"d',
    "back\\\\",
    "tab\\t",
    "\\u00e9",
    "\\ud800",
    "é",
    "",
    '"ph": "X"',
    "{",
)
_PHASES = ("X", "X", "X", "M", "i", "f", "s", "B", "")


def document(data: bytes) -> bytes:
    """A trace much as Kineto writes it, its fields, gaps, cuts and dents chosen by the input."""
    take = atheris.FuzzedDataProvider(data)

    def pick(values: tuple[str, ...]) -> str:
        return values[take.ConsumeIntInRange(0, len(values) - 1)]

    gap = pick((" ", " ", "", "\n  ", "  "))
    rows = []
    for _ in range(take.ConsumeIntInRange(0, 6)):
        name = pick(_NAMES) if take.ConsumeBool() else take.ConsumeUnicodeNoSurrogates(6)
        fields = [f'"ph": "{pick(_PHASES)}"', f'"cat": "{pick(_CATEGORIES)}"', f'"name": "{name}"']
        fields += [
            f'"{key}":{gap}{pick(_NUMBERS)}' for key in ("pid", "tid", "ts", "dur") if take.ConsumeIntInRange(0, 15)
        ]
        inner = [
            f'"{key}":{gap}{pick(_NUMBERS)}'
            for key in ("device", "stream", "correlation", "bytes")
            if take.ConsumeBool()
        ]
        fields.append(f'"args": {{{", ".join(inner)}}}')
        rows.append("{" + gap + ", ".join(fields) + gap + "}")
    head = f'{{"schemaVersion": {pick(_NUMBERS)}, "baseTimeNanoseconds": {pick(_NUMBERS)},\n'
    head += f'"deviceProperties": [{{"id": {pick(_NUMBERS)}, "name": "g"}}],\n' if take.ConsumeBool() else ""
    text = (head + '"traceEvents": [\n' + ",\n".join(rows) + "\n]}").encode("utf-8", "surrogatepass")
    for _ in range(take.ConsumeIntInRange(0, 3)):
        at = take.ConsumeIntInRange(0, len(text))
        text = text[:at] + take.ConsumeBytes(take.ConsumeIntInRange(0, 3)) + text[at + take.ConsumeIntInRange(0, 5) :]
    return text[: take.ConsumeIntInRange(0, len(text))] if take.ConsumeIntInRange(0, 7) == 0 else text


def look(data: bytes) -> None:
    """One input: as it is, or what it makes of a trace."""
    text = data[1:] if data[:1] == b"\0" else document(data)
    try:
        kineto._read(io.BytesIO(text), Path("trace.json"))
    except kineto.TraceError:
        return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args()
    words = [sys.argv[0], f"-max_total_time={options.seconds}", "-max_len=512", "-rss_limit_mb=2048", "-timeout=20",
             "-print_final_stats=1", f"-artifact_prefix={tempfile.gettempdir()}/trace-"]  # fmt: skip
    atheris.Setup(words, look)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
