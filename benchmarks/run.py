"""Measures what a run costs beside its engines, and prints a table: `python -m benchmarks.run`.

docs/benchmarks.md says what each row is. The engines are NVIDIA's TensorRT for RTX, which build without a GPU.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import uv
from platformdirs import user_cache_dir

from harness.agent.engines import machine_facts
from harness.case import load_cases
from harness.errors import InfraError
from harness.matrix import Target, load_matrix
from harness.plan import all_cells
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.run.provision.cache import make_once
from harness.run.stamps import harness_commit
from harness.scratch import Scratch

ROOT = Path(__file__).resolve().parents[1]
CORES = len(os.sched_getaffinity(0))
POLYGRAPHY = "polygraphy==0.53.6"
#: A regression is an answer, and on a busy machine a cell may time out.
DONE = (0, 1, 3)
#: By what was measured: a figure of each round.
Samples = dict[str, list[float]]


def machine() -> str:
    """Return a line on what is measured on; nothing in it names the machine."""
    fields = dict(
        line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    )
    memory = int(fields["MemTotal"].split()[0]) / (1 << 20)
    cpu = machine_facts().get("cpu", platform.machine())
    return (
        f"{CORES} cores, {cpu}, {memory:.1f} GiB of memory; Python {platform.python_version()}; "
        f"harness {harness_commit() or 'unknown'}; load {os.getloadavg()[0]:.1f} at the start"
    )


def table(rows: Samples, times: int) -> str:
    """Return the rows as Markdown; the unit of each stands in its name."""
    lines = [f"Medians of {times}, load {os.getloadavg()[0]:.1f} at the end.", ""]
    lines += ["| what | median | least to most |", "| --- | ---: | ---: |"]
    lines += [
        f"| {what} | {shown(median(found))} | {shown(min(found))} to {shown(max(found))} |"
        for what, found in rows.items()
    ]
    return "\n".join(lines)


def shown(value: float) -> str:
    """Return a figure with three digits, or all before the point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def ran(words: Sequence[str], accepted: Sequence[int] = DONE) -> float:
    """Return the seconds that a program took; raises InfraError where it ended with a code that is not accepted."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in accepted:
        raise InfraError(
            f"{' '.join(words[:6])} ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}"
        )
    return time.monotonic() - began


@dataclass(frozen=True)
class Selection:
    """The cells that are measured: of some targets, by an expression."""

    targets: tuple[str, ...]
    expression: str

    @property
    def words(self) -> list[str]:
        """Return the options that select them."""
        named = [word for name in self.targets for word in ("--target", name)]
        return [*named, *(("-k", self.expression) if self.expression else ())]

    def run(self, reports: Path, workers: int, *more: str) -> tuple[float, tuple[Outcome, ...]]:
        """Run them into a folder; return the seconds, and all outcomes of the folder that an engine took part in."""
        words = ["run", "--reports", str(reports), "--via", "venv", "-j", str(workers), *self.words]
        seconds = ran(["harness", *words, *more])
        found = tuple(outcome for outcome in Store(reports).outcomes() if outcome.state == "done")
        if not found:
            raise InfraError(f"no cell of {', '.join(self.targets)} was run; `trt-compat doctor` says why")
        return seconds, found


def phases(outcomes: Sequence[Outcome]) -> float:
    """Return what the engines' own phases took, one after the other."""
    return sum(seconds for outcome in outcomes for seconds in outcome.phases.values())


def one_cell(folder: Path, rows: Samples) -> None:
    """Run a cell whose environment is made."""
    seconds, found = Selection(("rtx17",), "mish and fp32").run(folder / "one", 1, "--fresh")
    note(rows, "a run of one case's FP32 cells on rtx17, s", seconds)
    note(rows, "- beyond the engine's own phases, s", seconds - phases(found))


def whole(selection: Selection, folder: Path, rows: Samples) -> None:
    """Run all with one worker, then with one a core, then again with nothing changed."""
    _, alone = selection.run(folder / "alone", 1, "--fresh")
    seconds, found = selection.run(folder / "every", CORES, "--fresh")
    limit = phases(alone) / CORES
    name = f"{len(found)} cells of {', '.join(selection.targets)}"
    note(rows, f"{name}: a run with a worker a core, s", seconds)
    note(rows, "- the limit: their phases with one worker over the cores, s", limit)
    note(rows, "- the run over the limit, x", seconds / limit)
    note(rows, "- cells a second", len(found) / seconds)
    again, after = selection.run(folder / "every", CORES)
    if len(after) != len(found):
        raise InfraError(f"the second run made {len(after) - len(found)} cells anew")
    note(rows, "- the same again with nothing changed, s", again)


def by_pytest(folder: Path, rows: Samples) -> None:
    """Let pytest collect all cells and run, or skip, those of one version."""
    words = ["pytest", "-q", "-p", "no:cacheprovider", "-k", "trt86", f"--reports={folder / 'pytest'}"]
    note(rows, "pytest -k trt86, s", ran(words, (0, 1)))


def note(rows: Samples, what: str, value: float) -> None:
    """Add a sample to a row."""
    rows.setdefault(what, []).append(value)


def polygraphy(target: Target) -> Path:
    """Return Polygraphy's program beside a target's engine, in an environment made for it once."""
    name = f"{POLYGRAPHY}-{target.name}-{target.version}".replace("==", "-")
    folder = make_once(
        Path(user_cache_dir("trt-compat-benchmarks")) / name, lambda new: _install(target, new)
    )
    return folder / "bin" / "polygraphy"


def _install(target: Target, folder: Path) -> None:
    python = str(folder / "bin" / "python")
    for words in (
        ["venv", "--quiet", "--relocatable", "--python", target.python, str(folder)],
        ["pip", "install", "--quiet", "--python", python, POLYGRAPHY, "numpy", *target.packages],
    ):
        done = subprocess.run([uv.find_uv_bin(), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise InfraError(f"{POLYGRAPHY} cannot be installed: {' '.join(done.stderr.split())[-300:]}")


def models(selection: Selection, folder: Path, most: int) -> list[tuple[Path, Path]]:
    """Write the models of some cells, spread over all; return each with the program that is to build it."""
    listed = subprocess.run(
        [sys.executable, "-m", "harness", "list", *selection.words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    chosen = set(listed.stdout.split())
    cells = [
        cell
        for cell in all_cells(load_matrix(ROOT / "matrix.yaml"), load_cases(ROOT / "cases"))
        if cell.id in chosen and cell.inapplicable is None
    ]
    made = []
    for cell in cells[:: max(1, -(-len(cells) // most))]:
        file = folder / f"{cell.case.name}-{cell.variant.name}.onnx"
        file.write_bytes(cell.variant.model_bytes())
        made.append((polygraphy(cell.target), file))
    return made


def converted(given: tuple[Path, Path]) -> bool:
    """Build one model as the newer engines always do, strongly typed; tell whether an engine came of it."""
    program, file = given
    words = ["convert", str(file), "--convert-to", "trt", "--strongly-typed", "--output", os.devnull]
    done = subprocess.run(
        [program, *words],
        # Polygraphy asks at import which of the two engines it is to use.
        env=os.environ | {"POLYGRAPHY_USE_TENSORRT_RTX": "1"},
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def a_process_a_model(given: list[tuple[Path, Path]], rows: Samples) -> None:
    """Let Polygraphy build models, as many at a time as there are cores."""
    began = time.monotonic()
    with ThreadPoolExecutor(CORES) as pool:
        built = sum(pool.map(converted, given))
    rate = len(given) / (time.monotonic() - began)
    note(rows, f"{POLYGRAPHY}, a process a model, {built} of {len(given)} built: models a second", rate)


def main() -> int:
    """Measure in rounds and print the table; returns 3 where something could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=5, metavar="N", help="rounds (default: 5)")
    parser.add_argument(
        "--targets", default="rtx14,rtx15,rtx16,rtx17", help="of the whole run, with commas between"
    )
    parser.add_argument(
        "-k", dest="expression", default="", help="cells of the whole run: words with `or` between"
    )
    parser.add_argument("--models", type=int, default=120, help="models that Polygraphy builds; 0 for none")
    options = parser.parse_args()
    selection = Selection(tuple(options.targets.split(",")), options.expression)
    print(machine(), flush=True)
    rows: Samples = {}
    troubles = []
    # A plain folder of such a name would be taken for a killed run's, and removed by the runs that are measured.
    with Scratch("bench-") as name:
        scratch = Path(name)
        steps: list[Callable[[Path], None]] = [
            lambda folder: one_cell(folder, rows),
            lambda folder: by_pytest(folder, rows),
            lambda folder: whole(selection, folder, rows),
        ]
        try:
            given = models(selection, scratch, options.models) if options.models else []
        except InfraError as error:
            troubles.append(str(error))
        else:
            steps += [lambda _: a_process_a_model(given, rows)] if given else []
        for number in range(options.times):
            print(f"round {number + 1} of {options.times}", file=sys.stderr, flush=True)
            for step in steps:
                step(Path(tempfile.mkdtemp(dir=scratch)))
    print(table(rows, options.times))
    print("".join(f"\nNot measured: {trouble}" for trouble in troubles))
    return 3 if troubles else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InfraError as trouble:
        sys.exit(f"infrastructure: {trouble}")
