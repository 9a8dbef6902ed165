"""A question in plain words -> its answer: the lexicon's words found in it, and sentences by what was asked.

static/ask.js does the same on the page; tests/report/test_asking.py holds both to one answer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.report.lexicon import TOKEN, plain
from harness.text import listed

Json = Mapping[str, Any]
#: Lines on rows and on versions in an answer, errors that it names, and tokens of the longest term.
_MOST_ROWS, _MOST_COLUMNS, _MOST_ERRORS, _LONGEST = 3, 3, 2, 6
#: Whole numbers from the first on may be a major version, none is as high as the second; months of NGC are between.
_BARE, _NEWEST_MAJOR, _NGC, _MOST_PARTS = 7, 12, range(20, 40), 4
_WORD = re.compile(r"[^\W_]+")
_PRODUCTS = {"tensorrt": "TensorRT", "rtx": "TensorRT for RTX", "ort": "ONNX Runtime"}
#: Other scales whose versions each have a column.
_RELEASES = ("jetpack", "l4t", "ngc")


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


@dataclass(frozen=True)
class Version:
    """A version in a question: its scale ("tensorrt", "jetpack", "cuda"), and the number, "10" for 10.x."""

    scale: str
    number: str


@dataclass
class Question:
    """What a question names: `named` by kinds of the lexicon; `about` are words that rows are looked through for."""

    named: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    versions: list[Version] = field(default_factory=list)
    about: dict[str, list[str]] = field(default_factory=dict)
    jetson: bool = False
    turned: bool = False


def read(table: Json, question: str) -> Question:
    """Find the lexicon's words in a question, the longest first; a word that is none of them is looked for in rows."""
    return _Reading(table, plain(question)).asked


class _Reading:
    def __init__(self, table: Json, text: str) -> None:
        self._table, self._text, self._tokens = table, text, [*TOKEN.finditer(text)]
        self._scale: str | None = None
        self.asked = Question()
        at = 0
        while at < len(self._tokens):
            at += self._take(at)
        if not self.asked.about and "FP32" in self.asked.named["precisions"]:
            self.asked.about["FP32"] = ["fp32"]

    def _take(self, at: int) -> int:
        """Take the longest term that begins at a token, else the token; return how many tokens that are."""
        terms = self._table["terms"]
        for many in range(min(_LONGEST, len(self._tokens) - at), 0, -1):
            text = " ".join(token[0] for token in self._tokens[at : at + many])
            if meaning := terms.get(text) or terms.get(text.lower()):
                kind, name = meaning.split(":")
                self._term(kind, name, text)
                return many
        text = self._tokens[at][0].lower()
        if text[0].isdigit():
            self._number(at, text)
        elif text.isalnum() and len(text) > 1 and not self._glued(at):
            self.asked.about[text] = [text]
            self._scale = None
        return 1

    def _term(self, kind: str, name: str, text: str) -> None:
        asked, scale = self.asked, self._scale
        asked.jetson |= name in self._table["jetsons"]
        # A version that follows one of foreign software is none of ours.
        self._scale = {"scales": name, "between": scale, "foreign": ""}.get(kind)
        if kind == "between":
            asked.turned |= text.lower() == "than" and len(asked.versions) == 1
        elif kind == "columns":
            column = self._table["columns"][name]
            asked.versions.append(Version(column["scale"], column["short"]))
        else:
            asked.named[kind].append(name)
            if like := self._table["likes"].get(f"{kind}:{name}"):
                asked.about[text] = like

    def _glued(self, at: int) -> bool:
        """Tell whether a token follows a letter or a number without a blank."""
        return self._text[: self._tokens[at].start()][-1:].isalnum()

    def _number(self, at: int, text: str) -> None:
        scale, self._scale = self._scale, None
        if scale is None:
            scale = "" if self._glued(at) else self._guessed(at, text)
        number = text.removesuffix(".x")
        if self._text[self._tokens[at].end() :][:1].isalpha():
            return
        if scale == "sm":
            dotted = number if "." in number else f"{number[:-1]}.{number[-1:]}"
            every = {capability: name for name, capability in reversed(self._table["cards"].items())}
            self.asked.named["cards"] += filter(None, [every.get(dotted)])
        # trt8510 is a build's short name, which has no one reading.
        elif scale and (scale != "tensorrt" or _numbers(number) < (_NEWEST_MAJOR,)):
            self.asked.versions.append(Version(scale, number))

    def _guessed(self, at: int, text: str) -> str:
        """Return the scale of a number without one: of NGC's months, of the version before, of TensorRT."""
        major, *minor = text.removesuffix(".x").split(".")
        if int(major) in _NGC and list(map(len, minor)) == [2]:
            return "ngc"
        follows = at > 0 and self._tokens[at - 1][0].lower() in self._table["roles"]
        if follows and self.asked.versions and len(minor) < _MOST_PARTS:
            return self.asked.versions[-1].scale
        return "tensorrt" if "." in text or (follows and int(major) >= _BARE) else ""


def answer(table: Json, data: Json, question: str, headline: Callable[[str, str], str]) -> QuestionAnswer:
    """Return the answer to a question; `headline` gives the sentence on the step between two columns, by their ids."""
    return _Answering(table, data, read(table, question), headline).whole()


class _Answering:
    def __init__(self, table: Json, data: Json, asked: Question, headline: Callable[[str, str], str]) -> None:
        self._table, self._data, self._asked, self._headline = table, data, asked, headline
        self._named = {kind: _once(every) for kind, every in asked.named.items()}
        self._columns: list[Json] = [{"id": name, **each} for name, each in table["columns"].items()]
        self._main = [each for each in self._columns if each["series"] == "TensorRT"]
        self._rows = _all_rows(data)
        self._own = self._of_scales(_PRODUCTS) or ([] if self._of_scales(_RELEASES) else self._newest())
        named = self._own or self._of_scales(_RELEASES)
        self._step = self._between(named) or self._up_to(named)
        self._found = self._step or [column for version in named for column in self._latest(version)]
        self._best, self._unheard = self._searched()

    def _newest(self) -> list[Version]:
        return [Version("tensorrt", each["short"]) for each in self._main[-1:] if self._asks("newest")]

    def _of_scales(self, scales: Iterable[str]) -> list[Version]:
        return _once(each for each in self._asked.versions if each.scale in scales)

    def _asks(self, what: str) -> bool:
        return what in self._names("asks")

    def whole(self) -> QuestionAnswer:
        types, rows = [*self._facts(self._names("precisions"))], [*self._row_lines()]
        lines = [*self._plan(), *self._latency(), *self._stepped(), *self._neighbours(), *self._of_cards()]
        lines += [*self._of_operators(), *self._facts(self._of_asks())]
        lines += types + rows if len(self._asked.about) <= len(self._names("precisions")) else rows + types
        lines += [
            *self._of_columns(1 if lines else _MOST_COLUMNS),
            *self._of_stacks(alone=not lines),
            *self._errors(),
        ]
        foreign = self._names("foreign")
        if (unknown := [*self._unheard, *foreign]) and (lines or foreign):
            lines.append(Line(self._say("unknown", words=", ".join(unknown))))
        ids = [each["id"] for each in self._found]
        step = (ids[0], ids[1]) if self._step else None
        rest = tuple(ids), tuple(row["id"] for row in self._best)
        return QuestionAnswer(tuple(lines) or (Line(self._say("nothing")),), step, *rest)

    def _names(self, kind: str) -> list[str]:
        return self._named.get(kind, [])

    def _say(self, name: str, **values: str) -> str:
        return str(self._table["says"][name].format(**values))

    def _facts(self, keys: Iterable[str], card: str = "") -> Iterator[Line]:
        """Yield the facts that the lexicon has by some keys, of a card."""
        for text, href in filter(None, map(self._table["facts"].get, keys)):
            yield Line(text.replace("{card}", card).replace(f"({card}, ", "("), href)

    def _fitting(self, version: Version, series: str = "") -> list[Json]:
        """Return the columns of a version: of a series, else of the first series that has any."""
        jetson = self._asked.jetson and version.scale == "tensorrt"
        fits = [each for each in self._columns if _is_of(each, version) and (each["jetson"] or not jetson)]
        return [each for each in fits if each["series"] == (series or fits[0]["series"])]

    def _latest(self, version: Version) -> list[Json]:
        """Return the columns of a major version, the newest one of another."""
        return self._fitting(version)[-1 if "." in version.number else 0 :]

    def _between(self, named: Sequence[Version]) -> list[Json]:
        """Return the columns of a step between two versions, of one product."""
        for series in _once(each["series"] for each in self._columns) if not self._asks("plan") else ():
            ends = [self._fitting(each, series) for each in named[:2]]
            if len(ends) > 1 and all(ends):
                return list(map(_best, ends))[:: -1 if self._asked.turned else 1]
        return []

    def _up_to(self, named: Sequence[Version]) -> list[Json]:
        """Return the columns of a step to one version from those before it, if that is asked for."""
        if len(named) != 1 or named != self._own or self._names("foreign"):
            return []
        (version,) = named
        alone = not (self._asked.about or self._named.keys() & {"cards", "asks"} or "." in version.number)
        fits = self._fitting(version) if alone or self._asks("step") else []
        series = [each for each in self._columns if each["series"] in {one["series"] for one in fits}]
        before = [each for each in series if _numbers(each["version"]) < _numbers(version.number)]
        return [_best(before), _best(fits)] if before else []

    def _stepped(self) -> Iterator[Line]:
        if self._step and not self._asks("latency"):
            a, b = self._step
            told = self._say("step", a=a["name"], b=b["name"])
            yield Line(f"{told} {self._headline(a['id'], b['id'])}", "step")

    def _plan(self) -> Iterator[Line]:
        own = self._own
        if not self._asks("plan") or not (len(own) > 1 or self._asks("built")):
            return
        if len(own) > 1:
            a, b = (f"{_PRODUCTS[each.scale]} {each.number}" for each in own[:2])
            yield Line(self._say(f"plan_{self._crossing(*own[:2])}", a=a, b=b), "error=foreign-engine")
        yield Line(self._say("plan_any"), "error=foreign-engine")

    def _crossing(self, old: Version, new: Version) -> str:
        one, other = _numbers(old.number), _numbers(new.number)
        if one >= other:
            return "same" if one == other else "earlier"
        crosses = one[0] == other[0] or f"{one[0]} {other[0]}" in self._table["across"]
        return "later" if crosses and one >= (8, 6) and old.scale != "rtx" else "far"

    def _of_columns(self, most: int) -> Iterator[Line]:
        exact = [] if self._step else [each for each in self._own if "." in each.number]
        return self._facts(
            [each["id"] for each in self._found if any(_is_of(each, one) for one in exact)][:most]
        )

    def _neighbours(self) -> Iterator[Line]:
        """Yield the neighbours of each version that is no column, and what is known of it."""
        jetson = self._asked.jetson
        for version in (each for each in self._own if not self._fitting(each)):
            every = [
                each for each in self._columns if (each["scale"], each["jetson"]) == (version.scale, jetson)
            ]
            every.sort(key=lambda each: _numbers(each["version"]))
            below = sum(_numbers(each["version"]) < _numbers(version.number) for each in every)
            near = every[max(below - 1, 0) : below + 1]
            asked = f"{_PRODUCTS[version.scale]} {version.number}{' on Jetson' if jetson else ''}"
            yield Line(
                self._say("no_column", asked=asked, nearest=listed([each["name"] for each in near])),
                "targets",
            )
            yield from self._facts([f"{version.scale} {'.'.join(version.number.split('.')[:2])}"])
            self._found += [] if self._step else near

    def _of_cards(self) -> Iterator[Line]:
        beside = [*(each["id"] for each in self._found), *self._names("precisions")]
        for card in self._names("cards"):
            capability = self._table["cards"][card]
            yield from self._facts([*(f"{capability} {each}" for each in beside), capability], card)

    def _of_operators(self) -> Iterator[Line]:
        for name in self._names("operators"):
            for column in (each for each in self._found if each["scale"] == "tensorrt"):
                told = f"does not read {name}"
                for since, said in self._table["operators"][name]["runs"]:
                    told = said if _numbers(since) <= _numbers(column["version"]) else told
                yield Line(self._say("reads", version=column["short"], reads=told), "operators")
            yield from self._facts([name])

    def _of_asks(self) -> Iterator[str]:
        """Yield the key of the fact on each thing that is asked: with a column if there is one, else alone."""
        for ask in self._names("asks"):
            keys = (*(f"{ask} {each['id']}" for each in self._found), ask)
            yield from [key for key in keys if key in self._table["facts"] and not self._names("operators")][
                :1
            ]

    def _of_stacks(self, *, alone: bool) -> Iterator[Line]:
        """Yield the facts on each CUDA, driver, JetPack, month of NGC and opset, or on the kind `alone`."""
        for version in self._of_scales(self._table["stacks"]):
            if not (self._step and version.scale in _RELEASES):
                keys = f"{version.scale} {version.number}", version.scale
                yield from self._facts([key for key in keys if key in self._table["facts"]][:1])
        if alone and not self._asked.versions:
            yield from self._facts(self._names("scales") or ["jetpack"] * self._asked.jetson)

    def _latency(self) -> Iterator[Line]:
        ends = self._step or self._usual()
        if not self._asks("latency") or not ends:
            yield from [Line(self._say("untimed"))] if self._asks("latency") else ()
            return
        a, b = ends
        rows = self._best if self._asked.about else self._rows
        timed = [_Timed(row, row["cells"][a["id"]], row["cells"][b["id"]]) for row in rows]
        timed = sorted(filter(_Timed.ratio, timed), key=_Timed.ratio, reverse=True)
        for each in timed[:_MOST_ROWS]:
            yield Line(self._say("timed", a=a["name"], b=b["name"], **each.values()), each.new["id"])
        yield Line(self._say("one_layer" if timed else "not_timed", a=a["name"], b=b["name"]))

    def _usual(self) -> list[Json]:
        """Return the measured step, which answers for no version that was not measured."""
        asked = [
            column for version in self._own for column in self._fitting(version)[-1:] or [{"measured": False}]
        ]
        measured = [each for each in self._main if each["measured"]]
        return [measured[0], measured[-1]] if measured[1:] and all(each["measured"] for each in asked) else []

    def _searched(self) -> tuple[list[Json], list[str]]:
        """Return the rows that hold most of the words, best first, and the words that neither rows nor errors hold."""
        about = self._asked.about
        points = [{shown: _points(row, like) for shown, like in about.items()} for row in self._rows]
        hits = list(map(self._hits, points))
        most = max(hits, default=0) or len(about) + 1
        best = [at for at, each in enumerate(hits) if each == most]
        best.sort(key=lambda at: (-sum(points[at].values()), *self._later(self._rows[at])))
        heard = (
            {shown for each in points for shown in each if each[shown]} | self._needed() | self._in_errors()
        )
        return [self._rows[at] for at in best], [shown for shown in about if shown not in heard]

    def _needed(self) -> set[str]:
        """Return the words that a row has to hold: operators."""
        operators = {name.lower() for name in self._names("operators")}
        return {shown for shown, like in self._asked.about.items() if operators & {*like}}

    def _in_errors(self) -> set[str]:
        texts = [_as_words(_error_text(each)) for each in self._data["signatures"].values()]
        return {
            shown for shown, like in self._asked.about.items() if any(_holds(text, like) for text in texts)
        }

    def _hits(self, points: Mapping[str, int]) -> int:
        """Count the words that a row holds; none if it only mentions some, or lacks a needed one."""
        found = list(points.values())
        near = all(found) or max(found) > 1
        return sum(map(bool, found)) if near and all(points[each] for each in self._needed()) else 0

    def _later(self, row: Json) -> tuple[bool, bool]:
        """Return what puts a row after others that hold the words as well: nothing known here, no reproducer."""
        known = any(row["cells"][each["id"]]["basis"] for each in self._found)
        return not known, row["role"] != "reproducer"

    def _row_lines(self) -> Iterator[Line]:
        """Yield the sentences of the best rows, one of a case, and what their first case is about."""
        wanted = {each["series"] for each in self._found}
        firsts: dict[str, Json] = {}
        for row in self._best:
            if row["sentences"] and not self._asks("latency"):
                firsts.setdefault(row["case"], row)
        for at, row in enumerate([*firsts.values()][:_MOST_ROWS]):
            sentence = max(row["sentences"], key=lambda each: each["series"] in wanted)
            cell = next(each["id"] for each in row["cells"].values() if each["basis"])
            yield Line(f"{row['title']}: {sentence['series']} {sentence['text']}.", cell)
            if not at:
                yield Line(row["summary"])

    def _errors(self) -> Iterator[Line]:
        """Yield the errors whose own words hold each word of the question that something holds."""
        words = [like for shown, like in self._asked.about.items() if shown not in self._unheard]
        words += [[name.lower()] for name in self._names("cards")]
        words += [[each.number] for each in self._own if "." in each.number]
        found = []
        for name, each in self._data["signatures"].items():
            title = _as_words(each["title"])
            if (hits := sum(_holds(title, like) for like in words)) and _holds_all(_error_text(each), words):
                found.append((hits, Line(f"Error: {each['title']}. {each['advice']}", f"error={name}")))
        most = _MOST_ERRORS if len(words) > min(1, len(self._best)) else 0
        return (line for _, line in sorted(found, key=lambda one: -one[0])[:most])


@dataclass(frozen=True)
class _Timed:
    """A row with its cells on both sides of a step."""

    row: Json
    old: Json
    new: Json

    def ratio(self) -> float:
        """Return the new median by the old one, 0 if a side has none."""
        old, new = (each.get("latency_ms") for each in (self.old, self.new))
        return float(new["median"] / old["median"]) if old and new else 0

    def values(self) -> dict[str, str]:
        old, new = (_spread(each["latency_ms"]) for each in (self.old, self.new))
        return {
            "title": self.row["title"],
            "old": old,
            "new": new,
            "gpu": (self.new.get("gpu") or ("", "CPU"))[1],
        }


def _once(every: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(every))


def _error_text(each: Json) -> str:
    return " ".join((each["title"], each["cause"], each["advice"], *(text["text"] for text in each["texts"])))


def _holds(text: str, like: Iterable[str]) -> bool:
    """Tell whether a text, as `_as_words` has it, holds any form of a word."""
    return any(_as_words(word)[:-1] in text for word in like)


def _holds_all(text: str, words: Iterable[Iterable[str]]) -> bool:
    return all(_holds(_as_words(text), like) for like in words)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _is_of(column: Json, version: Version) -> bool:
    asked = f"{version.scale} {version.number}."
    return any(asked.startswith(f"{own}.") or f"{own}.".startswith(asked) for own in column["is"])


def _best(fits: Iterable[Json]) -> Json:
    """Return the newest of the measured columns, else the newest."""
    return max(fits, key=lambda each: (each["measured"], _numbers(each["version"])))


def _spread(time: Json) -> str:
    """Return a median with what one machine does from run to run."""
    median, low, high = (micros(time.get(name) or 0) for name in ("median", "low", "high"))
    return f"{median} µs ({low} to {high})" if time.get("low") and time.get("high") else f"{median} µs"


def micros(milliseconds: float) -> str:
    """Return a time in microseconds with three digits."""
    return f"{float(f'{milliseconds * 1000:.3g}'):g}"


def _all_rows(data: Json) -> list[dict[str, Any]]:
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
                _as_words(row["title"]),
                _as_words(f"{case['title']} {' '.join(row['tags'] + row['topics'])}"),
                _as_words(" ".join(_words_of(case, row))),
            ],
        }
        for case in data["cases"]
        for row in case["variants"]
    ]


def _words_of(case: Json, row: Json) -> Iterator[str]:
    yield from (case["name"], row["name"], case["summary"])
    yield from (f"{node['name']} {node['op']}" for node in row["graph"]["nodes"])
    yield from (each["text"] for each in row["sentences"])
    yield from (f"{each['title']} {each['says']} {each['of']} {each['note']}" for each in row["claims"])


def _points(row: Json, like: Iterable[str]) -> int:
    """Return how near to a row's title any form of a word stands in it, 0 for nowhere."""
    singular = [re.sub(r"(?<=..[^s])s$", "", word) for word in like]
    return next((3 - at for at, text in enumerate(row["places"]) if _holds(text, singular)), 0)


def _as_words(text: str) -> str:
    """Return the words of a text in small letters, with a blank before and after each."""
    return f" {' '.join(_WORD.findall(text.lower()))} "
