"""The one table of what is fuzzed: what reads the bytes, what it promises to raise, and what to begin with.

The property test (tests/fuzz/test_targets.py) and the campaign (`make fuzz`, tools/fuzz) run the same targets. A target
raises nothing but what its reader's docstring promises: anything else is a finding, and so is an input that takes
longer than `SECONDS` of the processor.
"""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FrameType

from harness.errors import HandledError, InfraError
from tests.fuzz import seeds, sent, streams
from tests.fuzz.base import Read
from tests.fuzz.seeds import Seeds

#: Seconds of the processor that an input may take; the slowest that is known takes a tenth of it.
SECONDS = 10.0
#: Bytes of memory that an input may take beside what the process has: twice what an archive may unpack to, and more.
MEMORY = 1 << 30
#: Bytes of an input.
LONGEST = 64 << 10


class TooLong(BaseException):
    """An input took more than `SECONDS`; no reader may catch it."""


@dataclass(frozen=True)
class Target:
    """A reader of bytes; `make` makes it, `promises` is all that it may raise, `what` says what it reads."""

    name: str
    what: str
    make: Callable[[], Read]
    seeds: Seeds
    promises: tuple[type[Exception], ...] = ()

    def run(self, data: bytes) -> None:
        """Read an input; raises what the reader does not promise, and TooLong."""
        read = _made(self.make)
        with _limited(), contextlib.suppress(*self.promises):
            read(data)

    def every_seed(self) -> list[bytes]:
        """Return what to begin with, an empty input first."""
        return [b"", *(data[:LONGEST] for data in self.seeds())]


@cache
def _made(make: Callable[[], Read]) -> Read:
    return make()


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise TooLong in what takes too long, by the processor's clock, and MemoryError in what takes too much memory."""

    def end(_: int, __: FrameType | None) -> None:
        raise TooLong(f"more than {SECONDS:.0f} s")

    before = signal.signal(signal.SIGPROF, end)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


_FOUND = (
    Target(
        "frames",
        "frames of the stream, as agent and host decode and check them",
        streams.frames,
        seeds.frames,
    ),
    Target(
        "stream",
        "all that an agent says to the host in a run, to the record of it",
        streams.stream,
        seeds.frames,
        (InfraError,),
    ),
    Target("events", "messages of a job, to the record and the log of it", streams.events, seeds.events),
    Target("records", "a file of records, judged and explained", streams.records, seeds.records),
    Target("suite_records", "a file of a suite's records", streams.suite_records, seeds.suite_records),
    Target("suite_logs", "a file of a suite's logs", streams.suite_logs, seeds.suite_logs, (HandledError,)),
    Target("history", "a run of the past", streams.history, seeds.history, (HandledError,)),
    Target(
        "suite_history",
        "a suite's run of the past",
        streams.suite_history,
        seeds.suite_history,
        (HandledError,),
    ),
    Target("results", "a results.json", streams.results, seeds.results, (HandledError,)),
    Target(
        "further",
        "what a check found beyond its cells",
        streams.further,
        seeds.further,
        (HandledError,),
    ),
    Target(
        "runs",
        "what a folder keeps of its last runs",
        streams.runs,
        seeds.plain(
            '{"run": "a", "when": "2026-01-02", "cells": ["c[v]-t"], "options": {"via": null}}',
            '{"run": "a", "when": "2026-01-02", "cells": 3, "reused": 1, "made_of": ""}',
        ),
        (HandledError,),
    ),
    Target(
        "journal",
        "the journal of a reduction",
        streams.journal,
        seeds.plain('{"model": "a"}\n{"sha256": "b", "shown": true, "nodes": 3, "ended": "ok"}\n'),
        (HandledError,),
    ),
    Target(
        "layers_verbose",
        "layers in a verbose build log",
        partial(sent.layers, "verbose_log"),
        seeds.verbose,
    ),
    Target(
        "layers_inspector",
        "layers as the engine inspector lists them",
        partial(sent.layers, "inspector"),
        seeds.inspector,
    ),
    Target(
        "layers_log8x",
        "layers in a log of TensorRT 8.x",
        partial(sent.layers, "log_8x"),
        seeds.logs_of_layers,
    ),
    Target(
        "layers_ort",
        "layers of ONNX Runtime's optimised model",
        partial(sent.layers, "ort_graph"),
        seeds.of_files(seeds.LAYERS, "*.onnx"),
    ),
    Target(
        "profile",
        "ONNX Runtime's profile",
        sent.profile,
        seeds.of_files(seeds.LAYERS, "*profile.json"),
        (ValueError, RecursionError),
    ),
    Target("diagnosis", "what engines say, against all patterns", sent.diagnosis, seeds.diagnosed),
    Target("log", "the entries of a cell's log", sent.log_entries, seeds.logs_written, (ValueError,)),
    Target(
        "replay",
        "a record held against its log, as intake does",
        sent.replayed,
        seeds.replayed,
        (HandledError,),
    ),
    Target(
        "submission",
        "a submission: provenance, records and log",
        sent.submission,
        seeds.submissions,
        (HandledError,),
    ),
    Target(
        "packed_archive",
        "the bytes of a packed archive",
        sent.packed_archive,
        seeds.packed,
        (HandledError, InfraError),
    ),
    Target(
        "archive_members",
        "the members of an archive",
        sent.archive_members,
        seeds.archives,
        (HandledError, InfraError),
    ),
    Target("stored_log", "a packed log of the store", sent.stored_log, seeds.zipped, (HandledError,)),
    Target("matrix", "matrix.yaml", sent.matrix, seeds.matrices, (HandledError,)),
    Target(
        "measured",
        "measured.yaml",
        sent.measured,
        seeds.plain(
            "schema: 1\nrtx14:\n  engine: tensorrt_rtx\n  version: 1.4.0.76\n  measured: '2026-11-22'\n  cells:\n"
            "    attention[op-cache]: parse_failed attention-outputs\n    mish[fp32]: built\n"
        ),
        (HandledError,),
    ),
    Target(
        "signatures",
        "diagnosis.yaml",
        sent.signatures,
        seeds.entries("harness/judge/diagnosis.yaml", "- id:", 12),
        (HandledError,),
    ),
    Target(
        "revoked",
        "the list of revoked submissions",
        sent.revoked,
        seeds.plain("0123456789ab: why\n", "{}", "&a [*a]"),
        (HandledError,),
    ),
    Target("arrays", "an .npz file of a user's", sent.arrays, seeds.arrays, (HandledError,)),
    Target(
        "slurm",
        "what Slurm's commands print",
        sent.slurm,
        seeds.plain(
            "7|PENDING||Resources\n8|RUNNING|n1|None\n",
            "JobId=7 JobState=FAILED ExitCode=1:0 NodeList=(null) Reason=None\n",
            "COMPLETED|0:0|n1|\n",
            "NodeName=n1 Arch=x86_64 CoresPerSocket=1\n",
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller\n",
        ),
    ),
)
#: All targets by name.
TARGETS = {target.name: target for target in _FOUND}
