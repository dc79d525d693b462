from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from handmade import EPOCH_NS, PID, THREAD, TraceBuilder

from awp_lint.detector.profiling import kineto, timeline
from awp_lint.detector.profiling.timeline import Busy, Call, Cat, Direction


def small() -> TraceBuilder:
    builder = TraceBuilder()
    builder.host("cpu_op", "aten::add", 100.5, 30.25, **{"External id": 1})
    builder.launch(110.125, 5, 118, 2.5)
    builder.copy(130, 12, 140, 1.5, 4096, "HtoD (Pinned -> Device)", stream=20)
    builder.graph(200, 8, [(210, 1), (212, 1), (214, 1)])
    builder.sync(220, 4)
    return builder


@pytest.mark.parametrize("layout", ["kineto", "plain"])
def test_columns(tmp_path: Path, layout: str) -> None:
    trace = kineto.load(small().write(tmp_path / "t.json", layout))
    assert len(trace) == 10
    assert trace.pid == PID and trace.devices[0]["name"] == "NVIDIA H200"
    op = int(np.flatnonzero(trace.category == Cat.CPU_OP)[0])
    assert trace.names[trace.name[op]] == "aten::add"
    assert int(trace.start[op]) == EPOCH_NS + 100_500 and int(trace.end[op]) == EPOCH_NS + 130_750
    assert int(trace.thread[op]) == THREAD and int(trace.stream[op]) == -1
    copy = int(np.flatnonzero(trace.category == Cat.MEMCPY)[0])
    assert (int(trace.size[copy]), int(trace.stream[copy]), int(trace.device[copy])) == (4096, 20, 0)
    assert int(trace.thread[copy]) == 0
    assert list(trace.call_kinds) == [Call.LAUNCH, Call.LAUNCH, Call.GRAPH, Call.WAIT]


def test_links_charge_a_graph_launch_once(tmp_path: Path) -> None:
    trace = kineto.load(small().write(tmp_path / "t.json"))
    links = timeline.link(trace)
    assert list(links.work) == [1, 1, 3, 0]
    assert list(links.call_of) == [0, 1, 2, 2, 2]
    assert list(links.first) == [0, 1, 2, -1]
    assert timeline.sanity(trace, links) == []


def test_both_ways_of_reading_agree(tmp_path: Path) -> None:
    fast = kineto.load(small().write(tmp_path / "a.json"))
    slow = kineto.load(small().write(tmp_path / "b.json", "plain"))
    for column in ("category", "start", "end", "thread", "device", "stream", "correlation", "size"):
        assert np.array_equal(getattr(fast, column), getattr(slow, column)), column


def test_names_with_quotes_braces_and_other_alphabets(tmp_path: Path) -> None:
    names = ['op "quoted" {x}', "back\\slash", "ядро", '"ts": 5, "ph": "X"', "new\nline"]
    builder = TraceBuilder()
    for row, name in enumerate(names):
        builder.host("cpu_op", name, 10.0 * row, 1)
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    assert [trace.names[i] for i in trace.name] == names
    assert list((trace.start - EPOCH_NS) // 10_000) == [0, 1, 2, 3, 4]


def test_other_event_kinds_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    text = Path(small().write(path)).read_text()
    extra = (
        '  {"ph": "M", "name": "process_name", "ts": 1.0, "pid": 1, "tid": 0, "args": {"name": "python"}},\n'
        '  {"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1.0, "cat": "ac2g", "name": "ac2g"},\n'
        '  {"ph": "i", "s": "g", "name": "mark", "pid": "Traces", "tid": "x", "ts": 1.0},\n'
        '  {"ph": "X", "cat": "Trace", "name": "Profiler (0)", "pid": "Spans", "tid": "p", "ts": 1, "dur": 9},\n'
    )
    path.write_text(text.replace('"traceEvents": [\n', '"traceEvents": [\n' + extra))
    assert len(kineto.load(path)) == 10


def test_many_chunks_give_every_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto, "_CHUNK", 3_000)
    builder = TraceBuilder()
    for row in range(500):
        builder.launch(100.0 * row, 5, 100.0 * row + 10, 7.25, name=f"kernel_{row % 7}")
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    assert len(trace) == 1000 and trace.gpu.size == 500
    assert np.array_equal(trace.start[trace.gpu], EPOCH_NS + 1000 * (100 * np.arange(500) + 10))
    assert int((trace.end - trace.start)[trace.gpu].sum()) == 500 * 7250
    assert list(timeline.link(trace).call_of) == list(range(500))


def test_epoch_microseconds_without_a_base_keep_their_digits(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1790857026123456, "dur": 2, "args": {}}
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    trace = kineto.load(path)
    assert int(trace.start[0]) == 1790857026123456000 and int(trace.category[0]) == Cat.KERNEL


def test_gzip(tmp_path: Path) -> None:
    plain = Path(small().write(tmp_path / "t.json"))
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert len(kineto.load(packed)) == 10
    packed.write_bytes(gzip.compress(plain.read_bytes())[:-40])
    with pytest.raises(kineto.TraceError, match="damaged"):
        kineto.load(packed)


def test_cut_off_file_keeps_what_is_whole_and_says_so(tmp_path: Path) -> None:
    path = Path(small().write(tmp_path / "t.json"))
    path.write_bytes(path.read_bytes()[:-120])
    trace = kineto.load(path)
    assert len(trace) == 9
    assert any("cut off" in problem for problem in trace.problems)


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"traceEvents": 3}', "[1, 2"])
def test_no_trace(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(kineto.TraceError, match="not a Kineto trace"):
        kineto.load(path)


def test_empty_trace(tmp_path: Path) -> None:
    trace = kineto.load(TraceBuilder().write(tmp_path / "t.json"))
    assert len(trace) == 0 and timeline.sanity(trace, timeline.link(trace)) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaLaunchKernel", Call.LAUNCH),
        ("cuLaunchKernelEx", Call.LAUNCH),
        ("cudaGraphLaunch", Call.GRAPH),
        ("cudaMemcpyAsync", Call.LAUNCH),
        ("cudaMemcpy", Call.COPY_WAIT),
        ("cudaMemsetAsync", Call.LAUNCH),
        ("cudaStreamSynchronize", Call.WAIT),
        ("cudaDeviceSynchronize", Call.WAIT),
        ("hipStreamSynchronize", Call.WAIT),
        ("cudaFree", Call.RELEASE),
        ("cudaStreamWaitEvent", Call.OTHER),  # the host goes on
        ("cudaEventQuery", Call.OTHER),
        ("cudaLaunchHostFunc", Call.OTHER),
        ("cudaMalloc", Call.OTHER),
    ],
)
def test_call_kinds(name: str, kind: Call) -> None:
    assert timeline.call_kind(name) is kind


def test_copy_kinds() -> None:
    assert timeline.copy_kind("Memcpy DtoH (Device -> Pageable)") == (Direction.D2H, True)
    assert timeline.copy_kind("Memcpy HtoD (Pinned -> Device)") == (Direction.H2D, False)
    assert timeline.copy_kind("Memcpy DtoD (Device -> Device)") == (Direction.D2D, None)
    assert timeline.copy_kind("Memcpy PtoP (Device -> Device)") == (Direction.D2D, None)


def test_busy_is_a_union() -> None:
    busy = Busy(np.array([50, 10, 15, 100]), np.array([60, 30, 20, 110]))  # 10–30, 50–60, 100–110
    a, b = np.array([0, 12, 30, 55, 105, 200]), np.array([200, 25, 50, 101, 105, 300])
    assert list(busy.within(a, b)) == [40, 13, 0, 6, 0, 0]
    assert list(busy.idle(a, b)) == [160, 0, 20, 40, 0, 100]
    nothing = Busy(np.empty(0, np.int64), np.empty(0, np.int64))
    assert list(nothing.idle(a, b)) == list(b - a)


def test_sanity_finds_work_before_its_launch(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for row in range(10):
        builder.launch(100.0 * row + 50, 5, 100.0 * row, 7)
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    assert timeline.sanity(trace, timeline.link(trace)) == ["100% of the device work starts before its own launch"]


def test_sanity_finds_overlap_on_one_stream_but_not_in_graphs(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for row in range(10):
        builder.launch(100.0 * row, 5, 100.0 * row + 10, 150)
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    assert any("overlaps" in reason for reason in timeline.sanity(trace, timeline.link(trace)))
    graph = TraceBuilder()
    graph.graph(0, 5, [(10, 50), (20, 50), (30, 50)])
    trace = kineto.load(graph.write(tmp_path / "g.json"))
    assert timeline.sanity(trace, timeline.link(trace)) == []


def test_sanity_finds_waits_that_do_not_wait(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for row in range(10):
        builder.launch(1000.0 * row, 5, 1000.0 * row + 10, 600)
        builder.sync(1000.0 * row + 20, 30, "cudaDeviceSynchronize")
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    assert any("return while earlier work" in reason for reason in timeline.sanity(trace, timeline.link(trace)))


def test_a_real_trace_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two decode steps on an H200 (torch 2.11, CUDA 13); the counts are those of the categories in the text."""
    monkeypatch.setattr(kineto, "_row", None)  # all of it follows the layout: ``json`` reads no device or host event
    trace = kineto.load(Path(__file__).parent / "data" / "h200_two_steps.json.gz")
    counted = {cat: int((trace.category == cat).sum()) for cat in Cat}
    assert counted[Cat.CPU_OP] == 1123 and counted[Cat.KERNEL] == 545 and counted[Cat.MEMCPY] == 8
    assert counted[Cat.RUNTIME] == 516 and counted[Cat.DRIVER] == 48 and counted[Cat.SYNC] == 8
    links = timeline.link(trace)
    assert timeline.sanity(trace, links) == []
    assert (links.call_of >= 0).all()
    assert set(trace.thread[trace.calls].tolist()) == {trace.pid}
    copies = {trace.names[i] for i in trace.name[trace.category == Cat.MEMCPY]}
    assert "Memcpy HtoD (Pageable -> Device)" in copies
    assert int(trace.size.max()) == 131072


HUGE = ["1e400", "-1e400", "NaN", "9" * 30, "9" * 5000, "-" + "9" * 30, str(2**63), '"--1"', '"' + "9" * 5000 + '"']


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("gap", ["\n  ", ""])  # Kineto's layout and another
def test_numbers_that_no_column_holds_end_nothing(tmp_path: Path, number: str, gap: str) -> None:

    def event(time: str, length: str, args: str) -> str:
        head = f'{gap}"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7'
        return "{" + f'{head}, "ts": {time}, "dur": {length}, "args": {{{args}}}' + "}"

    rows = [
        event("10.5", "3", f'"correlation": {number}'),
        event(number, number, f'"device": {number}'),
        event("20.5", "3", ""),
    ]
    path = tmp_path / "trace.json"
    for base in ("0", number):
        text = f'{{"baseTimeNanoseconds": {base}, "traceEvents": [{gap}' + ",\n".join(rows) + "]}"
        path.write_text(text)
        try:
            found = kineto.load(path)
        except kineto.TraceError:
            continue  # what `json` does not read is told
        assert len(found) >= 1


def test_compressed_traces_that_are_bombs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto, "_LONGEST", 50_000_000)
    path = tmp_path / "trace.json.gz"
    event = b'{"traceEvents": [{"ph": "X", "name": "' + b"x" * 80_000_000 + b'"}]}'
    for raw in (b"[" + b" " * 80_000_000 + b"]", event):
        path.write_bytes(gzip.compress(raw, 1))
        with pytest.raises(kineto.TraceError, match="MB"):
            kineto.load(path)
