"""What the page holds of the steps between columns is what `upgrade` says of them, and how many of them it holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.layers.datatype import NARROW
from harness.report.compare.choices import choice, later
from harness.report.compare.kinds import Kind
from harness.report.compare.pairs import Column
from harness.report.compare.steps import Steps
from harness.report.compare.upgrade import upgrade
from harness.report.model import Results, TargetView
from harness.report.page import steps as page_steps
from harness.report.page.cells import facts
from harness.report.page.html import render
from harness.report.page.packing import unsqueezed
from harness.report.page.steps import offered, packed_steps, starts
from harness.report.results import assemble
from harness.words import Class, Grade, Precision, Verdict
from tests.report import factory
from tests.report.handmade import STAMPS, target
from tests.report.test_pages import resolved
from tests.report.test_step_page import with_claims, with_timings, with_unasked

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.unit

PHRASES = ("text", "cause", "instead", "sure", "seen", "signature")
SCRIPTS = sorted((Path(page_steps.__file__).parent / "static").glob("*.js"))


def named(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table as the page's script makes objects of them."""
    if "columns" in table:
        rows = zip(*table["columns"].values(), strict=True)
        return [dict(zip(table["columns"], row, strict=True)) for row in rows]
    return [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]


def held(results: Results) -> dict[tuple[str, str], Any]:
    """Return the steps in a page by their two targets, each with its rows."""

    def opened(chunk: dict[str, Any]) -> Any:
        plain = json.loads(unsqueezed(chunk["packed"]))
        return resolved(plain["rows"], plain["table"])

    found = {}
    there, packed = packed_steps(Steps(results))
    phrases, lines, become, variants = opened(packed["rowsOfSteps"])
    spelt = [line | {name: phrases[line[name]] for name in PHRASES} for line in named(lines)]
    order = {str(kind): at for at, kind in enumerate(Kind)}
    starts = zip(results.targets, there["to"], opened(packed["steps"]), strict=True)
    for start, (before, afters, steps) in enumerate(starts):
        for at, (after, step) in enumerate(zip(afters, steps, strict=True)):
            names = before.id, results.targets[after].id
            rows = [
                {"row": number} | {key: marked(text, names) for key, text in spelt[line].items()}
                for number, columns in enumerate(variants)
                for line in become[columns[start][at]]
            ]
            step["rows"] = sorted(rows, key=lambda row: order[row["kind"]])
            found[names] = step
    return found


def marked(text: Any, names: tuple[str, str]) -> Any:
    """Return a phrase with both names in place of their marks."""
    for mark, name in zip(page_steps.MARKS, names, strict=True):
        text = text.replace(mark, name) if isinstance(text, str) else text
    return text


@pytest.mark.parametrize("make", [factory.results, with_timings, with_claims, with_unasked])
def test_every_step_of_the_page_is_what_was_judged(make: Callable[[], Results]) -> None:
    results = make()
    names = [(variant.case, variant.name) for case in results.cases for variant in case.variants]
    found = held(results)
    assert len(found) == len(results.targets) ** 2
    for (before, after), step in found.items():
        wanted = upgrade(Column(results, before), Column(results, after))
        assert (step["headline"], step["basis"], step["quiet"]) == (
            wanted.headline,
            wanted.basis,
            f"{wanted.rest} {wanted.coverage} {wanted.timing}".replace("  ", " "),
        )
        rows = [(row["kind"], *names[row["row"]]) for row in step["rows"]]
        assert rows == [(row.kind, row.case, row.variant) for row in wanted.rows]
        for row, each in zip(step["rows"], wanted.rows, strict=True):
            assert {**row, **{key: getattr(each, key) for key in PHRASES}} == row
        tiles = [
            (tile["kind"], tile["label"], tile["number"] or str(wanted.count(Kind(tile["kind"]))))
            for tile in named(step["tiles"])
        ]
        assert tiles == [(tile.kind, tile.label, tile.number) for tile in wanted.tiles()]
        onward = list(choice(wanted)) if after in later(results, before) else None
        assert step.get("choice") == onward


def test_latency_is_told_against_a_column_only_where_it_may_be() -> None:
    """About as fast, faster, and nothing for another machine and for samples that are noise."""
    found = held(with_timings())
    said = {
        after: [change["said"] for change in named(found["rtx14", after]["changes"])]
        for after in ("rtx14", "rtx15", "rtx16", "rtx17")
    }
    assert said == {"rtx14": ["≈+0 %"], "rtx15": ["+49 %"], "rtx16": [], "rtx17": []}


def test_a_large_report_has_the_nearest_steps_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    """All, those within a series, those between neighbours, the one on top: as many as are not too many."""
    results = factory.results()
    monkeypatch.setattr(page_steps, "default_pair", lambda _: ("l4t86", "ort131"))
    seen = {}
    for most in (256, 255, 191, 167):
        monkeypatch.setattr(page_steps, "_MOST_COMPARED", most)
        offer = offered(results)
        seen[most] = [sum(map(len, offer.columns)), offer.said]
    besides = "and those from and to l4t86 and ort131"
    assert seen == {
        256: [64, ""],
        255: [48, f"The page has the steps between versions of one series, {besides}"],
        191: [42, f"The page has the steps between neighbours in one series, {besides}"],
        167: [10, "The page has the steps between l4t86 and ort131"],
    }
    ids = [target.id for target in results.targets]
    assert [ids[at] for at in offer.columns[ids.index("l4t86")]] == ["l4t86", "ort131"]
    text = re.sub(r"<.*?>", "", render(results))
    assert f"{seen[167][1]}; trt-compat diff A B answers the others." in text


def test_what_was_accepted_says_that_it_was_measured_where_it_was_not_run() -> None:
    """Beside cells that say what is reported; one that was run needs no such word."""
    for made, wanted in (([], "measured: builds"), ([factory.outcome("qdq", "rtx16")], "builds (INT8 1/1)")):
        results = assemble(factory.matrix(), (factory.case(),), {one.cell: one for one in made})
        found = facts(results, Steps(results))
        row = [each["name"] for each in named(found["rows"])].index("qdq")
        column = [each["id"] for each in found["targets"]].index("rtx16")
        assert named(found["looks"])[found["grid"][row][column]]["said"] == wanted


#: Words that are a judgement wherever they stand; others are English too, and no rule may be written as one of them.
ONLY_JUDGEMENTS = {word for words in (Class, Kind, Grade, Verdict) for word in map(str, words) if "_" in word}
PRECISIONS = {str(kind) for kind in Precision if kind not in (Precision.BOOL, Precision.UNKNOWN)}
EVERY_WORD = {str(word) for words in (Class, Kind, Grade, Verdict, Precision) for word in words}


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_no_script_judges(script: Path) -> None:
    """The page draws what was judged: no class, kind, grade, verdict or precision is told apart in a script."""
    text = re.sub(r"^\s*//.*$", "", script.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [word for word in sorted(ONLY_JUDGEMENTS | PRECISIONS) if re.search(rf"\b{word}\b", text)] == []
    literals = set(re.findall(r'"([a-z_0-9]+)"', text)) | set(re.findall(r"'([a-z_0-9]+)'", text))
    assert sorted(literals & EVERY_WORD) == []
    assert not set(map(str, NARROW)) & set(re.findall(r"\w+(?=:)", text))


def test_steps_between_major_versions_of_tensorrt_are_one_click_away() -> None:
    """From the newest of each to the newest of a later one; not of other products, nor the step that is shown."""

    def of(name: str, version: str, **fields: Any) -> TargetView:
        return target(name, version, **{"series": "TensorRT", "engine": "tensorrt", "stamps": None, **fields})

    targets = (
        of("t85", "8.5"),
        of("t86", "8.6"),
        of("t107", "10.7"),
        of("t110", "11.0"),
        of("l86", "8.6", series="Jetson", platform="jetson"),
        of("l103", "10.3", series="Jetson", platform="jetson"),
        of("s86", "8.6", series="TensorRT, SM 7.5"),
        of("s103", "10.3", series="TensorRT, SM 7.5"),
        of("r1", "1.0", series="RTX", engine="tensorrt_rtx"),
        of("r2", "2.0", series="RTX", engine="tensorrt_rtx"),
    )

    def told(*changed: TargetView) -> dict[str, list[tuple[str, str]]]:
        own = {target.id: target for target in (*targets, *changed)}
        found = starts(Results(tuple(own.values()), (), ()))
        return {each.product: [(one.id, other.id) for one, other in each.steps] for each in found}

    every = [("t86", "t107"), ("t86", "t110"), ("t107", "t110")]
    jetson = {"TensorRT on Jetson": [("l86", "l103")]}
    run = {"stamps": STAMPS}
    assert told(of("r1", "1.0", series="RTX", engine="tensorrt_rtx", **run)) == {
        "TensorRT": every[:2],
        **jetson,
    }
    both = (of("t107", "10.7", **run), of("t110", "11.0", **run))
    assert told(*both) == {"TensorRT": every[:2], **jetson}
    assert told(of("t85", "8.5", **run), of("t86", "8.6", **run)) == {"TensorRT": every, **jetson}
