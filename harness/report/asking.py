"""A question in plain words -> its answer: the lexicon's words found in it, and sentences by what was asked.

static/ask.js does the same on the page; tests/report/test_asking.py holds both to one answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.question import Question, Version, read
from harness.text import listed

#: Lines on rows and on versions in an answer, and errors that it names.
_MOST_ROWS, _MOST_COLUMNS, _MOST_ERRORS = 3, 3, 2
#: Majors from 8 to 10, which has no 9 for Jetson: NVIDIA supports no wider step.
_MAJORS = 2
_WORD = re.compile(r"[^\W_]+")
_NAMES = {"tensorrt": "TensorRT", "rtx": "TensorRT for RTX", "ort": "ONNX Runtime"}


@dataclass(frozen=True)
class Line:
    """A sentence of an answer, and the place on the page that it leads to."""

    text: str
    href: str = ""


@dataclass(frozen=True)
class QuestionAnswer:
    """An answer: its lines, the step and the columns that it speaks of, and the rows that fit best."""

    lines: tuple[Line, ...]
    step: tuple[str, str] | None
    columns: tuple[str, ...]
    rows: tuple[str, ...]


def answer(
    table: Mapping[str, Any],
    data: Mapping[str, Any],
    question: str,
    headline: Callable[[str, str], str],
) -> QuestionAnswer:
    """Return the answer to a question; `headline` gives the sentence on the step between two columns, by their ids."""
    return _Answering(table, data, read(table, question), headline).whole()


class _Answering:
    def __init__(
        self,
        table: Mapping[str, Any],
        data: Mapping[str, Any],
        asked: Question,
        headline: Callable[[str, str], str],
    ) -> None:
        self._table, self._data, self._asked, self._headline = table, data, asked, headline
        self._columns: list[Mapping[str, Any]] = table["columns"]
        self._rows = _all_rows(data)
        self._own = [each for each in asked.versions if each.scale in ("tensorrt", "rtx", "ort")]
        self._found: list[Mapping[str, Any]] = []
        self._step: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None

    def whole(self) -> QuestionAnswer:
        self._settle()
        best, unknown = self._best_rows()
        lines = [*self._plan(), *self._latency(best), *self._stepped(), *self._neighbours(), *self._cards()]
        types, of_rows = list(self._precisions()), list(self._row_lines(best))
        alone = len(self._asked.about) <= len(self._asked.precisions)
        lines += [*self._operators(), *self._told(), *(types + of_rows if alone else of_rows + types)]
        lines += [*self._facts(more=bool(lines)), *self._scales(), *self._errors(unknown, 1 if best else 0)]
        if unknown and lines:
            lines.append(Line(self._say("unknown", words=", ".join(unknown))))
        step = (self._step[0]["id"], self._step[1]["id"]) if self._step else None
        columns = tuple(each["id"] for each in self._found)
        rows = tuple(row["id"] for row in best)
        return QuestionAnswer(tuple(lines) or (Line(self._say("nothing")),), step, columns, rows)

    def _say(self, name: str, **values: str) -> str:
        return str(self._table["says"][name].format(**values))

    def _fitting(self, version: Version, series: str = "") -> list[Mapping[str, Any]]:
        """Return the columns of a version: of a series, else of the first series that has any."""
        fits = [each for each in self._columns if _is_of(each, version, self._table)]
        if self._asked.jetson and version.scale == "tensorrt":
            fits = [each for each in fits if each["jetpacks"]]
        return [each for each in fits if each["series"] == (series or fits[0]["series"])]

    def _settle(self) -> None:
        """Find the step and the columns that are asked for."""
        own = [each for each in self._own if each.scale] or [
            each for each in self._asked.versions if each.scale in ("jetpack", "l4t", "ngc")
        ]
        own = list(dict.fromkeys(own))
        if "newest" in self._asked.asks and not own:
            own = [
                Version(
                    "tensorrt", [each for each in self._columns if each["series"] == "TensorRT"][-1]["short"]
                )
            ]
            self._own = own
        if len(own) > 1 and "plan" not in self._asked.asks:
            self._pair(own[:2])
        elif len(own) == 1 and own[0].scale and self._leads(own[0]):
            self._lead(own[0])
        if not self._step:
            for version in own:
                fits = self._fitting(version)
                self._found += [each for each in fits if "." not in version.number] or fits[-1:]

    def _leads(self, version: Version) -> bool:
        """Tell whether one version is asked for as the end of a step."""
        asked = self._asked
        alone = not (asked.about or asked.cards or asked.asks) and "." not in version.number
        return version.scale in ("tensorrt", "rtx", "ort") and (alone or "step" in asked.asks)

    def _pair(self, own: Sequence[Version]) -> None:
        for series in dict.fromkeys(each["series"] for each in self._columns):
            ends = [self._fitting(each, series) for each in own]
            if all(ends):
                old, new = (_best(each) for each in ends)
                self._step = (new, old) if self._asked.turned else (old, new)
                self._found = list(self._step)
                return

    def _lead(self, version: Version) -> None:
        """Take the step to a version from the versions before it."""
        fits = self._fitting(version)
        earlier = [
            each
            for each in self._columns
            if fits
            and each["series"] == fits[0]["series"]
            and _numbers(each["version"]) < _numbers(version.number)
        ]
        if earlier:
            self._step = _best(earlier), _best(fits)
            self._found = list(self._step)

    def _stepped(self) -> Iterator[Line]:
        if self._step and "latency" not in self._asked.asks:
            a, b = self._step
            told = self._say("step", a=a["name"], b=b["name"])
            yield Line(f"{told} {self._headline(a['id'], b['id'])}", "step")

    def _plan(self) -> Iterator[Line]:
        asks = self._asked.asks
        if "plan" not in asks or not (len(self._own) > 1 or "built" in asks):
            return
        if len(self._own) > 1:
            old, new = self._own[:2]
            a, b = (f"{_NAMES[each.scale]} {each.number}" for each in (old, new))
            one, other = _numbers(old.number), _numbers(new.number)
            early = (
                one < (8, 6)
                or old.scale == "rtx"
                or other[0] - one[0] > _MAJORS
                or (one[0], other[0]) == (8, 11)
            )
            form = "plan_earlier" if one > other else "plan_far" if early else "plan_later"
            yield Line(self._say("plan_same" if one == other else form, a=a, b=b), "error=foreign-engine")
            if one[0] != other[0]:
                yield Line(self._say("plan_major"))
        yield Line(self._say("plan_any"), "error=foreign-engine")

    def _facts(self, *, more: bool) -> Iterator[Line]:
        """Yield the facts on the versions that are asked for; `more` was told already."""
        told = [] if self._step else [each for each in self._found if self._own and self._fits(each)]
        for each in told[: 1 if more else _MOST_COLUMNS]:
            yield Line(f"{each['name']}: {each['says']}", f"target-{each['id']}")

    def _fits(self, column: Mapping[str, Any]) -> bool:
        return any(_is_of(column, version, self._table) for version in self._own if "." in version.number)

    def _neighbours(self) -> Iterator[Line]:
        """Yield the neighbours of each version that is no column, and what is known of it."""
        for version in dict.fromkeys(self._own):
            if self._fitting(version):
                continue
            every = sorted(
                (
                    each
                    for each in self._columns
                    if each["scale"] == version.scale and bool(each["jetpacks"]) is self._asked.jetson
                ),
                key=lambda each: _numbers(each["version"]),
            )
            below = [each for each in every if _numbers(each["version"]) < _numbers(version.number)][-1:]
            above = [each for each in every if _numbers(each["version"]) > _numbers(version.number)][:1]
            near = listed([each["name"] for each in (*below, *above)])
            asked = f"{_NAMES[version.scale]} {version.number}{' on Jetson' if self._asked.jetson else ''}"
            yield Line(self._say("no_column", asked=asked, nearest=near), "targets")
            release = ".".join(version.number.split(".")[:2])
            if version.scale == "tensorrt" and release in self._table["releases"]:
                yield Line(self._table["releases"][release])
            if not self._step:
                self._found += [*below, *above]

    def _scales(self) -> Iterator[Line]:
        """Yield the columns of a CUDA, a driver, a JetPack, a month of NGC, an opset."""
        names = {
            "cuda": "CUDA",
            "driver": "Driver",
            "jetpack": "JetPack",
            "l4t": "L4T",
            "ngc": "NGC",
            "opset": "Opset",
        }
        for version in dict.fromkeys(self._asked.versions):
            if version.scale not in names or (self._step and version.scale in ("jetpack", "ngc", "l4t")):
                continue
            what = f"{names[version.scale]} {version.number}"
            if version.scale == "opset":
                opset = _numbers(version.number)
                first = next((first for most, first in self._table["opsets"] if (most,) >= opset), None)
                said = f"TensorRT {first} and later, by NVIDIA's operator tables" if first else "no table yet"
                yield Line(self._say("columns_with", what=what, columns=said), "operators")
                continue
            fits = [each for each in self._columns if _is_of(each, version, self._table)]
            if not fits:
                yield Line(self._say("no_columns_with", what=what), "targets")
            elif len(fits) <= _MOST_COLUMNS:
                yield from (
                    Line(f"{what}: {each['name']}, {each['says']}", f"target-{each['id']}") for each in fits
                )
            else:
                said = listed(list(dict.fromkeys(each["name"] for each in fits)))
                yield Line(self._say("columns_with", what=what, columns=said), "targets")

    def _cards(self) -> Iterator[Line]:
        for name in dict.fromkeys(self._asked.cards):
            capability = self._table["cards"][name]
            known = self._table["capabilities"][capability]
            for column in self._found:
                form = "takes_card" if column["id"] in known["columns"] else "no_card"
                if column["scale"] in ("tensorrt", "rtx") and not (self._step and form == "takes_card"):
                    yield Line(
                        self._say(form, version=column["short"], card=name, capability=capability),
                        f"target-{column['id']}",
                    )
            for precision in dict.fromkeys(self._asked.precisions):
                each = self._table["precisions"][precision]
                lacks = capability in each["lacks"] or _numbers(capability) < _numbers(each["lowest"] or "0")
                form = "no_precision" if lacks else "has_precision"
                values = {
                    "card": name,
                    "capability": capability,
                    "precision": precision,
                    "lowest": each["lowest"],
                }
                if each["lowest"]:
                    yield Line(self._say(form, **values))
            kind = ", ".join(
                each for each in (known["architecture"], f"SM {capability}") if each not in ("", name)
            )
            yield Line(f"{name} ({kind}): {' '.join(known['says'])}", "targets")

    def _precisions(self) -> Iterator[Line]:
        for name in dict.fromkeys(self._asked.precisions):
            if self._table["precisions"][name]["says"]:
                yield Line(self._table["precisions"][name]["says"])

    def _operators(self) -> Iterator[Line]:
        for name in dict.fromkeys(self._asked.operators):
            first = self._table["operators"][name]
            for column in self._found:
                if column["scale"] == "tensorrt":
                    since = re.search(r"\d+\.\d+", first)
                    reads = since and _numbers(since[0]) <= _numbers(column["version"])
                    yield Line(
                        self._say("is_read" if reads else "not_read", version=column["short"], operator=name),
                        "operators",
                    )
            yield Line(f"{name}: TensorRT reads it {first}.", "operators")
            if not any(node["op"] == name for row in self._rows for node in row["graph"]["nodes"]):
                yield Line(self._say("no_row", operator=name))
        if "operators" in self._asked.asks and not self._asked.operators:
            own = [each for each in self._found if f"operators {each['id']}" in self._table["told"]]
            for column in own[:1]:
                unread = self._table["told"][f"operators {column['id']}"]
                yield Line(f"Of ONNX's operators {column['name']} does not read: {unread}.", "operators")
            if not own:
                yield Line("Operators by version:", "operators")

    def _latency(self, best: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
        step = self._step or self._usual()
        if "latency" not in self._asked.asks or step is None:
            return
        a, b = step
        timed = [
            (old["median"], new["median"], row, old, new, row["cells"][b["id"]].get("gpu") or ("", "CPU"))
            for row in (best if self._asked.about else self._rows)
            for old, new in [(row["cells"][each["id"]].get("latency_ms") for each in step)]
            if old and new
        ]
        for _, _, row, old, new, gpu in sorted(timed, key=lambda each: -each[1] / each[0])[:_MOST_ROWS]:
            values = {"title": row["title"], "old": _spread(old), "new": _spread(new), "gpu": gpu[1]}
            yield Line(self._say("timed", a=a["name"], b=b["name"], **values), f"{row['id']}-{b['id']}")
        yield Line(self._say("one_layer") if timed else self._say("not_timed", a=a["name"], b=b["name"]))

    def _usual(self) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        measured = [each for each in self._columns if each["series"] == "TensorRT" and each["measured"]]
        return (measured[0], measured[-1]) if len(measured) > 1 else None

    def _told(self) -> Iterator[Line]:
        places = {"exists": "targets", "measured": "targets", "data": "data", "report": "", "run": ""}
        for ask in dict.fromkeys(self._asked.asks):
            if ask in places:
                yield Line(self._table["told"][ask], places[ask])

    def _best_rows(self) -> tuple[list[Mapping[str, Any]], list[str]]:
        """Return the rows that hold most of the words, best first, and the words that none holds."""
        about = dict(self._asked.about)
        operators = {name.lower() for name in self._asked.operators}
        needed = [shown for shown, like in about.items() if operators & set(like)]
        held: set[str] = set()
        scored = []
        for at, row in enumerate(self._rows if about else ()):
            points = {shown: max(_points(row, word) for word in like) for shown, like in about.items()}
            hits = [shown for shown, each in points.items() if each]
            held.update(hits)
            known = any(row["cells"][each["id"]]["basis"] for each in self._found)
            order = (-sum(points.values()), not known, row["role"] != "reproducer", at)
            if all(points[shown] for shown in needed):
                scored.append((-len(hits), order, row))
        most = min((hits for hits, _, _ in scored), default=0)
        best = sorted((each for each in scored if each[0] == most and most), key=lambda each: each[1])
        errors = [_as_words(_error_text(each)) for each in self._data["signatures"].values()]
        unheard = [
            shown
            for shown, like in about.items()
            if shown not in {*held, *needed}
            and not any(_as_words(word)[:-1] in text for text in errors for word in like)
        ]
        return [row for _, _, row in best], unheard

    def _row_lines(self, best: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
        """Yield the sentences of the best rows, one of a case, and what their first case is about."""
        if "latency" in self._asked.asks:
            return
        wanted = {each["series"] for each in self._found}
        firsts: dict[str, Mapping[str, Any]] = {}
        for row in best:
            if row["sentences"]:
                firsts.setdefault(row["case"], row)
        for at, row in enumerate(list(firsts.values())[:_MOST_ROWS]):
            sentence = next(
                (each for each in row["sentences"] if each["series"] in wanted), row["sentences"][0]
            )
            cell = next(each["id"] for each in row["cells"].values() if each["basis"])
            said = f"{sentence['series']} {sentence['text']}"
            yield Line(self._say("row", title=row["title"], sentence=said), cell)
            if not at:
                yield Line(row["summary"])

    def _errors(self, unknown: Sequence[str], fewest: int) -> Iterator[Line]:
        """Yield the errors whose own words hold each word of the question that something holds."""
        words = [like for shown, like in self._asked.about if shown not in unknown]
        words += [[name.lower()] for name in self._asked.cards]
        words += [[each.number] for each in self._own if "." in each.number]
        found = [
            (name, each)
            for name, each in self._data["signatures"].items()
            if len(words) > fewest
            and _held(words, _error_text(each)) == len(words)
            and _held(words, each["title"])
        ]
        for name, each in sorted(found, key=lambda one: -_held(words, one[1]["title"]))[:_MOST_ERRORS]:
            yield Line(f"Error: {each['title']}. {each['advice']}", f"error={name}")


def _error_text(each: Mapping[str, Any]) -> str:
    return " ".join((each["title"], each["cause"], each["advice"], *(text["text"] for text in each["texts"])))


def _held(words: Sequence[Sequence[str]], text: str) -> int:
    """Count the words of which a text holds any form."""
    whole = _as_words(text)
    return sum(any(_as_words(word)[:-1] in whole for word in like) for like in words)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _begins(version: str, number: str) -> bool:
    return f"{version}.".startswith(f"{number}.")


def _is_of(column: Mapping[str, Any], version: Version, table: Mapping[str, Any]) -> bool:
    number = version.number
    if version.scale == "driver":
        return bool(column["driver"]) and _numbers(column["driver"]) <= _numbers(number)
    if version.scale == "l4t":
        number = next((jp for l4t, jp in table["l4t"].items() if _begins(number, l4t)), "-")
    if version.scale in ("jetpack", "l4t"):
        return any(_begins(each, number) or _begins(number, each) for each in column["jetpacks"])
    if version.scale == "ngc":
        return f":{number}-" in column["image"]
    if version.scale == "cuda":
        return _begins(column["cuda"], number)
    return column["scale"] == version.scale and (
        _begins(column["version"], number) or column["short"] == number or _begins(number, column["version"])
    )


def _best(fits: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the newest of the measured columns, else the newest."""
    return max(fits, key=lambda each: (each["measured"], _numbers(each["version"])))


def _spread(time: Mapping[str, Any]) -> str:
    """Return a median with what one machine does from run to run."""
    low, high = time.get("low"), time.get("high")
    noise = f" ({micros(low)} to {micros(high)})" if low and high else ""
    return f"{micros(time['median'])} µs{noise}"


def micros(milliseconds: float) -> str:
    """Return a time in microseconds with three digits."""
    return f"{float(f'{milliseconds * 1000:.3g}'):g}"


def _all_rows(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows with their words, in the order of results.json."""
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in data["cells"]:
        cells.setdefault((cell["case"], cell["variant"]), {})[cell["target"]] = cell
    return [
        {
            **row,
            "id": f"{case['name']}.{row['name']}",
            "case": case["name"],
            "cells": cells[case["name"], row["name"]],
            "summary": case["summary"],
            "places": [
                _as_words(text)
                for text in (
                    row["title"],
                    f"{case['title']} {' '.join(row['tags'] + row['topics'])}",
                    " ".join(_words_of(case, row)),
                )
            ],
        }
        for case in data["cases"]
        for row in case["variants"]
    ]


def _words_of(case: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    yield from (case["name"], row["name"], case["summary"])
    yield from (f"{node['name']} {node['op']}" for node in row["graph"]["nodes"])
    yield from (each["text"] for each in row["sentences"])
    yield from (f"{each['title']} {each['says']} {each['of']} {each['note']}" for each in row["claims"])


def _points(row: Mapping[str, Any], word: str) -> int:
    """Return how near to a row's title a word stands in it, 0 for nowhere."""
    singular = word[:-1] if word.endswith("s") and len(word) > 3 else word  # noqa: PLR2004
    begun = _as_words(singular)[:-1]
    return next((3 - at for at, text in enumerate(row["places"]) if begun in text), 0)


def _as_words(text: str) -> str:
    """Return the words of a text in small letters, with a blank before and after each."""
    return f" {' '.join(_WORD.findall(text.lower()))} "
