"""What the head of a column says: on what and when it was measured, and whether that still holds."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from harness.engines import ENGINES
from harness.text import clip
from harness.words import UNJUDGED, Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.model import CellView, Results, TargetView

#: A column measured more than so many days before the newest one is marked: drivers and images have moved on since.
OLD_DAYS = 30
NO_GPU, NOT_RUN = "no GPU", "not run"


@dataclass(frozen=True)
class Column:
    """A target's head.

    `state` is "run", "old" (out of date in whole or in part, or run long before the newest one) or "unrun"; `date` is
    short, `said` has the stamps in words, and `stale` says what is out of date.
    """

    target: TargetView
    state: Literal["run", "old", "unrun"]
    gpu: str
    date: str
    said: str
    stale: str = ""


@dataclass(frozen=True)
class Group:
    """Neighbouring columns of one family, in parts that ran on the same GPU."""

    family: str
    parts: tuple[tuple[str, tuple[Column, ...]], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of all parts."""
        return tuple(column for _, part in self.parts for column in part)


def groups(results: Results) -> list[Group]:
    """Return the heads in the order of the targets, by family and within it by GPU."""
    by_target: dict[str, list[CellView]] = {target.id: [] for target in results.targets}
    for cell in results.cells:
        by_target[cell.target].append(cell)
    newest = max((target.stamps.when for target in results.targets if target.stamps), default="")
    columns = [_column(target, by_target[target.id], newest) for target in results.targets]
    return [
        Group(family, tuple((gpu, tuple(part)) for gpu, part in groupby(found, lambda column: column.gpu)))
        for family, found in groupby(columns, lambda column: column.target.family)
    ]


def _column(target: TargetView, cells: Sequence[CellView], newest: str) -> Column:
    stale = _stale(target, cells, newest)
    head = f"{target.label}, {target.engine} {target.version}, {target.platform}"
    if target.stamps is None:
        gone = f"; {stale}" if stale else ""
        said = f"{head}{gone}; not run for this report: it needs {target.needs}"
        return Column(target, "old" if stale else "unrun", NOT_RUN, "old" if stale else "", said, stale)
    stamps, seen = target.stamps, target.stamps.environment
    gpus = sorted({gpu for cell in cells if cell.measured and cell.stamps for gpu in gpus_of(cell)})
    parts = [
        head,
        f"run {stamps.when[:16].replace('T', ' ')} UTC ({stamps.via})",
        f"on {', '.join(gpus)}" if gpus else "",
        f"CUDA {seen['cuda']}" if seen.get("cuda") else "",
        f"driver {seen['driver']}" if seen.get("driver") else "",
        f"image {short_digest(stamps.image_digest)}" if stamps.image_digest else "",
        stale,
    ]
    ran_on = [gpu for gpu in gpus if gpu != NO_GPU] or [NO_GPU]
    gpu = _short_gpu(ran_on[0]) if len(ran_on) == 1 else f"{len(ran_on)} GPUs"
    date = _date(stamps.when, newest)
    return Column(target, "old" if stale else "run", gpu, date, "; ".join(filter(None, parts)), stale)


def _stale(target: TargetView, cells: Sequence[CellView], newest: str) -> str:
    many = sum(cell.stale for cell in cells)
    days = _days(target.stamps.when, newest) if target.stamps else 0
    parts = [
        f"{many} of {len(cells)} results are out of date: model, recipe or engine version changed"
        if many
        else "",
        f"run {days} days before the newest column" if days > OLD_DAYS else "",
    ]
    return "; ".join(filter(None, parts))


def label_of(target: TargetView) -> str:
    """Return what sentences call a target, however long its label is."""
    return clip(target.label, 80)


def product_name(target: TargetView) -> str:
    """Return a target as who has the hardware calls it: the board and its JetPack first, the id last."""
    if target.jetpack:
        board = f"{target.gpus or 'Jetson'}, JetPack {target.jetpack}"
        return f"{board} \N{EN DASH} TensorRT {target.version} ({target.id})"
    chosen = f": {target.gpus}" if ", SM" in target.series and target.gpus else ""
    return f"{target.label}{chosen} ({target.id})"


def facts_of(column: Column) -> list[tuple[str, str]]:
    """Return what a reader has to know of a column, by its name; what nothing says is left out."""
    target, stamps = column.target, column.target.stamps
    capability = f", compute capability {target.compute_capability}" if target.compute_capability else ""
    found = (
        ("Version", target.version),
        ("Released", target.released),
        ("Runs on", target.gpus and target.gpus + capability),
        ("Platform", target.platform),
        ("JetPack", target.jetpack),
        ("CUDA", target.cuda),
        ("NVIDIA driver", target.driver),
        ("Environment", target.image),
        ("Last run", f"{stamps.when[:10]}, {column.gpu}" if stamps else "not run here"),
        ("Out of date", column.stale),
        ("Note", target.notes),
    )
    return [(name, text) for name, text in found if text]


def target_data(column: Column) -> dict[str, Any]:
    """Return a column as the page's script has it."""
    target = column.target
    return {
        "id": target.id,
        "label": label_of(target),
        "family": target.family,
        "series": target.series,
        "version": target.version,
        "short": target.short,
        "engine": target.engine,
        "run": bool(target.stamps),
        "needs": target.needs,
        "gpu": column.gpu,
        "baseline": ENGINES[Engine(target.engine)].baseline,
        "commands": list(target.commands),
        "name": product_name(target),
        "facts": facts_of(column),
        "sources": [{"url": link.url, "title": link.title or link.url} for link in target.sources],
    }


def gpus_of(cell: CellView) -> set[str]:
    """Return the GPUs that a cell was measured on, or `NO_GPU`."""
    return {each.gpu or NO_GPU for each in cell.by_gpu if each.cls not in UNJUDGED} or {_stamped(cell)}


def _stamped(cell: CellView) -> str:
    return (cell.stamps.environment.get("gpu") if cell.stamps else "") or NO_GPU


def _short_gpu(name: str) -> str:
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ")


def short_digest(digest: str) -> str:
    """Return what is enough of a digest to tell images apart: twelve digits, as Docker shows them."""
    return digest.removeprefix("sha256:")[:12]


def _days(when: str, newest: str) -> int:
    try:
        return (dt.date.fromisoformat(newest[:10]) - dt.date.fromisoformat(when[:10])).days
    except ValueError:
        return 0


def _date(when: str, newest: str) -> str:
    """Return "20 Nov", or "Nov 2025" where it is not the year of the newest run."""
    try:
        found = dt.date.fromisoformat(when[:10])
    except ValueError:
        return when[:10]
    return f"{found.day} {found:%b}" if when[:4] == newest[:4] else f"{found:%b %Y}"
