"""Fuzzes one target until libFuzzer ends this process: `python -m tools.fuzz.one TARGET FINDINGS INPUTS FLAGS...`.

What escapes a target is written into the folder of findings, the shortest input for each place that it comes from,
and the search goes on. What libFuzzer itself ends, a hang in C or too much memory, it leaves as a file of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from random import Random

import atheris

from tools.fuzz.found import keep


def main() -> None:
    """Fuzz."""
    name, findings, inputs, *flags = sys.argv[1:]
    with atheris.instrument_imports(include=["harness", "tarfile"]):
        from tests.fuzz.mutate import edited, random_edits  # noqa: PLC0415  (as below)
        from tests.fuzz.targets import TARGETS, TooLong  # noqa: PLC0415  (what is imported before is not seen)

        target = TARGETS[name]
        # What the reader imports is instrumented too.
        for path in sorted(Path(inputs).iterdir())[:5]:
            # What is found already is found again, and kept, when it is fuzzed.
            with contextlib.suppress(Exception):
                target.run(path.read_bytes())

    def one(data: bytes) -> None:
        try:
            target.run(data)
        except (Exception, TooLong) as error:  # noqa: BLE001  (whatever escapes is a finding)
            keep(Path(findings), data, error)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)  # noqa: S311
        if random.random() < 0.5:  # noqa: PLR2004  (half)
            return edited(data, random_edits(random))[:most]
        return bytes(atheris.Mutate(data, most))

    program = os.environ.get("TRT_COMPAT_FUZZ_PROGRAM", sys.argv[0])
    atheris.Setup([program, *flags], one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
