"""Fuzzes one target in this process, until libFuzzer ends it: `python -m tools.fuzz.one TARGET FINDINGS FLAGS...`.

What escapes a target is written into the folder of findings, the shortest input for each place that it comes from,
and the search goes on. What libFuzzer itself ends, a hang in C or too much memory, it leaves as a file of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import traceback
from pathlib import Path
from random import Random

import atheris

TOP = Path(__file__).resolve().parents[2]


def main() -> None:
    """Fuzz."""
    name, findings, *flags = sys.argv[1:]
    with atheris.instrument_imports(include=["harness", "tarfile"]):
        from tests.fuzz.mutate import edited, random_edits  # noqa: PLC0415  (as below)
        from tests.fuzz.targets import TARGETS, TooLong  # noqa: PLC0415  (what is imported before is not seen)

        target = TARGETS[name]
        # What the reader imports is instrumented too.
        for data in target.every_seed()[:3]:
            # What is found already is found again, and kept, when it is fuzzed.
            with contextlib.suppress(Exception):
                target.run(data)

    def one(data: bytes) -> None:
        try:
            target.run(data)
        except (Exception, TooLong) as error:  # noqa: BLE001  (whatever escapes is a finding)
            _keep(Path(findings), data, error)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)  # noqa: S311
        if random.random() < 0.5:  # noqa: PLR2004  (half)
            return edited(data, random_edits(random))[:most]
        return bytes(atheris.Mutate(data, most))

    program = os.environ.get("TRT_COMPAT_FUZZ_PROGRAM", sys.argv[0])
    atheris.Setup([program, *flags], one, custom_mutator=mutate)
    atheris.Fuzz()


def _keep(folder: Path, data: bytes, error: BaseException) -> None:
    said = sentence(error)
    path = folder / hashlib.sha256(said.encode()).hexdigest()[:12]
    if path.exists() and path.stat().st_size <= len(data):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, content in ((".txt", f"{said}\n".encode()), ("", data)):
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(content)
        temporary.replace(path.with_name(path.name + suffix))


def sentence(error: BaseException) -> str:
    """Return what escaped and from where, the same for all inputs that end so: type, place, without what it says."""
    if type(error).__name__ == "TooLong":
        return f"TooLong: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(TOP)]
    last = next((frame for frame in reversed(ours) if "/harness/" in frame.filename), ours[-1])
    return f"{type(error).__name__} in {Path(last.filename).relative_to(TOP)}, {last.name}: {_line(last)}"


def _line(frame: traceback.FrameSummary) -> str:
    return " ".join((frame.line or "").split())[:80]


if __name__ == "__main__":
    main()
