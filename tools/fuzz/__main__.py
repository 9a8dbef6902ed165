"""Fuzzes the readers of what others wrote, and keeps corpus, findings and ledger.

python -m tools.fuzz --seconds 60                    all targets, a minute in all; the repository takes what comes of it
python -m tools.fuzz --seconds 480 --jobs 16 --out D   into a folder, as on another machine
python -m tools.fuzz --take D                        takes such a folder in
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.fuzz import corpus
from tests.fuzz.targets import TARGETS
from tools.fuzz import ledger
from tools.fuzz.campaign import Campaign, minimised

#: Bytes of a finding that are printed.
_SHOWN = 6000


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 where nothing was found, 1 where something was, 2 for a mistake."""
    options = _options().parse_args(arguments)
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        print(f"fuzz: there is no target {unknown[0]!r}; known: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if options.take:
        return take(options.take)
    if importlib.util.find_spec("atheris") is None:
        print(
            "fuzz: atheris is not installed: pip install atheris, which has wheels for some Pythons",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="trt-compat-fuzz-") as scratch:
        out = options.out or Path(scratch)
        found = Campaign(options.targets or list(TARGETS), options.seconds, options.jobs, out).run()
        shutil.rmtree(out / "work")
        print(_table(found))
        _told(found, out)
        if not options.out:
            _taken(out)
    return int(any(entry.findings for entry in found.values()))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="only these (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="how long all of it takes (default: 60)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="processes at once (default: one a core)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write there, and leave the repository as it is"
    )
    parser.add_argument(
        "--take", type=Path, metavar="DIR", help="take in what a campaign wrote there, and fuzz nothing"
    )
    return parser


def take(folder: Path) -> int:
    """Take a campaign's folder into the repository's corpus, findings and ledger."""
    if not (folder / "ledger.json").is_file():
        print(f"fuzz: {folder} holds no ledger.json, so it is no campaign's folder", file=sys.stderr)
        return 2
    _taken(folder)
    return 0


def _taken(folder: Path) -> None:
    for name in TARGETS:
        # Of a campaign that was ended in the middle there is what it worked on.
        new, old = (
            corpus.kept(name, folder / "corpus") or _worked_on(folder / "work" / name),
            corpus.kept(name),
        )
        if set(new) - set(old):
            corpus.keep(name, _fitting(name, {*old, *new}))
        for path in corpus.findings(name, folder / "findings"):
            kept = corpus.FINDINGS / name / path.name
            if path.suffix != ".txt" and not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, kept)
    ledger.write(ledger.together(ledger.read(), ledger.read(folder / "ledger.json")))


def _fitting(name: str, inputs: set[bytes]) -> Iterable[bytes]:
    """Return inputs that there is room for; to find those that others make needless takes a while."""
    if sum(map(len, inputs)) <= corpus.MOST:
        return inputs
    with tempfile.TemporaryDirectory(prefix="trt-compat-fuzz-") as scratch:
        return minimised(Path(scratch), name, inputs)


def _worked_on(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()] if folder.is_dir() else []


def _table(found: ledger.Ledger) -> str:
    lines = [
        "| target | inputs | seconds | edges | quiet s | findings |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, entry in found.items():
        lines.append(
            f"| {name} | {entry.inputs} | {entry.seconds:.0f} | {entry.edges} | {entry.quiet_s:.0f} "
            f"| {len(entry.findings)} |"
        )
    return "\n".join(lines)


def _told(found: ledger.Ledger, out: Path) -> None:
    """Print each finding with its input, which is lost with the machine where CI ran this."""
    for name, entry in found.items():
        for key, (_, what) in entry.findings.items():
            data = (out / "findings" / name / key).read_bytes()
            print(f"{name} {key}: {what}\n  {base64.b64encode(data[:_SHOWN]).decode()}")


if __name__ == "__main__":
    sys.exit(main())
