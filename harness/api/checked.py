"""What `check` returns: a model's judged cells by target."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.models.check import Change, Trouble, changes, coverage, median_ms, ran, troubles, worse
from harness.models.further import Further, as_json
from harness.report.further import Row, further_rows
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pandas as pd

    from harness.judge.cell import Judged
    from harness.models.static import Static

_COLUMNS = (
    "target",
    "version",
    "class",
    "signature",
    "operator",
    "node",
    "precision",
    "kept",
    "wanted",
    "median_ms",
    "reason",
)


@dataclass(frozen=True, repr=False)
class Checked:
    """What became of one model on each target, in the matrix's order; `assumed` are sentences on what nobody said.

    `further` are the answers of what was tried beyond the model as it is, for each target that was asked anything.
    `static` has by target what is known without running it: its `state`, and the `findings` that lead to it.
    """

    model: str
    results: tuple[Judged, ...]
    assumed: tuple[str, ...] = ()
    further: tuple[Further, ...] = ()
    static: Mapping[str, Static] = field(default_factory=dict)

    @cached_property
    def by_target(self) -> Mapping[str, Judged]:
        """Return the results by the targets' names."""
        return {each.cell.target.name: each for each in self.results}

    def __getitem__(self, target: str) -> Judged:
        try:
            return self.by_target[target]
        except KeyError:
            raise KeyError(f"{target!r} was not asked; {did_you_mean(target, self.by_target)}") from None

    def __repr__(self) -> str:
        told = ", ".join(f"{each.cell.target.name} {each.classification.cls}" for each in self.results)
        return f"<Checked {self.model}: {told or 'no target'}>"

    def __iter__(self) -> Iterator[Judged]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def ran(self, target: str) -> bool:
        """Tell whether a target answered: it can run here, and no machinery failed."""
        return ran(self[target])

    def troubles(self, target: str) -> frozenset[Trouble]:
        """Return what is wrong on a target: "build", "int8-loss", "numbers"."""
        return troubles(self[target])

    def worse(self, before: str, after: str) -> frozenset[Trouble]:
        """Return what gets worse from one target to another."""
        return worse(self[before], self[after])

    def changes(self, before: str, after: str) -> tuple[Change, ...]:
        """Return the nodes that run in another precision on the later target than on the earlier one."""
        return changes(self[before], self[after])

    def tried(self, target: str) -> Further:
        """Return what was tried on a target beyond the model as it is; its fields are None where nothing was asked."""
        judged = self[target]
        return next((each for each in self.further if each.target == target), Further(judged))

    def further_json(self) -> list[dict[str, Any]]:
        """Return what was tried further as plain data, as `results.json` has it under `further`."""
        return [as_json(each) for each in self.further]

    def rows(self) -> list[dict[str, Any]]:
        """Return a plain row for each target.

        `precision` is the narrow type that nodes are to run in, None where none is, and `kept` of `wanted` nodes do.
        `median_ms` is None where nothing was timed.
        """
        return [dict(zip(_COLUMNS, _row(each), strict=True)) for each in self.results]

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a data frame; raises ImportError where pandas is not installed."""
        import pandas as pd  # noqa: PLC0415  (no dependency of this project)

        return pd.DataFrame(self.rows(), columns=list(_COLUMNS))

    def _repr_html_(self) -> str:
        shown = _table(self.model, _COLUMNS, [row.values() for row in self.rows()])
        tried = further_rows(self.further_json())
        return shown + (_table("Tried further", Row._fields, tried) if tried else "")


def _table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _row(judged: Judged) -> tuple[object, ...]:
    found, kept = judged.diagnosis, coverage(judged)
    return (
        judged.cell.target.name,
        judged.cell.target.version,
        str(judged.classification.cls),
        judged.signature,
        found.operator if found else "",
        found.node if found else "",
        str(kept[0]) if kept else None,
        kept[1] if kept else 0,
        kept[2] if kept else 0,
        median_ms(judged),
        judged.classification.reason,
    )


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return f"<td>{html.escape(text)}</td>"
