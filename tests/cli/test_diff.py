"""`diff`: the page's judgement in the terminal, its exit codes, and what it makes of broken files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.compare.step import step
from harness.report.writer import results_json
from tests.fixtures import Capture, Patch
from tests.report import factory

pytestmark = pytest.mark.unit


def report() -> Any:
    """Return results.json of the factory's outcomes, as JSON."""
    return json.loads(results_json(factory.results()))


def cell(results: Any, variant: str, target: str) -> Any:
    """Return one cell, to be changed."""
    return next(each for each in results["cells"] if (each["variant"], each["target"]) == (variant, target))


def write(folder: Path, results: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results))
    return folder


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def two_reports(tmp_path: Path) -> tuple[Path, Path]:
    """Write two reports, the second without the failures of rtx17."""
    old = write(tmp_path / "old", report())
    results = report()
    for variant in ("qdq", "qdq-between"):
        found = cell(results, variant, "rtx17")
        found.update({"class": "built", "signature": None, "layers": None, "chip": ""})
        found.pop("diagnosis", None)
    return old, write(tmp_path / "new", results)


def test_the_answer_is_that_of_the_step(tmp_path: Path, capsys: Capture) -> None:
    """Headline and every row, with cause and what to do meanwhile."""
    write(tmp_path, report())
    assert main(["diff", "rtx16", "rtx17", "--reports", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    found = step(factory.results().column("rtx16"), factory.results().column("rtx17"))
    text = " ".join(" ".join(lines).split())
    assert text.startswith(found.headline)
    for row in found.rows:
        assert row.variant in text
        assert row.text in text
        assert row.sure in text
        assert row.cause in text
    assert [line[:9] for line in lines if line.startswith("Breaks")] == ["Breaks: 2"]
    assert max(map(len, lines)) <= 100


def test_a_claimed_step_is_told_as_such_and_fails_nothing(tmp_path: Path, capsys: Capture) -> None:
    """Claims are no measurements."""
    write(tmp_path, json.loads(results_json(factory.nobody_ran())))
    assert main(["diff", "trt102", "trt86", "--reports", str(tmp_path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("Not measured: trt102")
    assert "conv_silu.qdq (trt102 reported" in text
    assert "works → fails to build" in text


def test_exit_codes_of_two_reports(two_reports: tuple[Path, Path], capsys: Capture) -> None:
    """1 where something breaks, 0 where not; each target is compared with itself."""
    old, new = map(str, two_reports)
    assert main(["diff", new, old]) == 1
    assert main(["diff", old, f"{new}/results.json"]) == 0
    assert main(["diff", new, old, "--target", "rtx16"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 break, of " in said
    assert "Now works: 2" in said
    assert "trt86" not in said


def test_json_has_an_entry_a_target(two_reports: tuple[Path, Path], capsys: Capture) -> None:
    """For programs; the exit code is the same."""
    old, new = map(str, two_reports)
    assert main(["diff", new, old, "--json"]) == 1
    found = {entry["after"].split()[0]: entry for entry in json.loads(capsys.readouterr().out)}
    assert sorted(found) == ["ort131", "rtx14", "rtx15", "rtx16", "rtx17"]
    assert found["rtx17"]["counts"]["broken"] == len(found["rtx17"]["rows"]) == 2


def test_long_lists_end(tmp_path: Path, capsys: Capture) -> None:
    """A terminal is not scrolled through."""
    results = report()
    (case,) = results["cases"]
    models = {variant["name"]: variant for variant in case["variants"]}
    row = [each for each in results["cells"] if each["variant"] == "qdq"]
    for number in range(120):
        name = f"more-{number}"
        case["variants"].append({**models["fp32"], "name": name})
        results["steps"]["variants"].append(results["steps"]["variants"][0])
        results["cells"] += [{**each, "variant": name, "claims": []} for each in row]
    write(tmp_path, results)
    assert main(["diff", "rtx16", "rtx17", "--reports", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    (head,) = (line for line in lines if line.startswith("Breaks: "))
    assert head.startswith("Breaks: 2, in")
    assert any("and 21 more" in line for line in lines)
    assert sum(line.count("more-") for line in lines) == 99
    assert sum("qdq-between" in line for line in lines) == 1
    # Of one cause, which is told once, above the names.
    assert sum("No implementation for" in line for line in lines) == 1
    assert len(lines) < 70


def test_hostile_text_stays_in_its_place(tmp_path: Path, capsys: Capture) -> None:
    """An engine's or a stranger's text must not paint the terminal or forge a line."""
    bad = "a\x1b[31m\nFixed: 99\r\u202e" + "n" * 5000
    results = report()
    cell(results, "qdq", "rtx17")["diagnosis"]["title"] = bad
    results["cases"][0]["variants"][1]["name"] = bad
    for each in results["cells"]:
        if each["variant"] == "qdq-between":
            each["variant"] = bad
    write(tmp_path, results)
    assert main(["diff", "rtx16", "rtx17", "--reports", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert not {"\x1b", "\r", "\u202e"} & set(said)
    assert "⟨U+202E⟩" in said
    assert not any(line.startswith("Fixed: 99") for line in said.splitlines())
    assert len(said) < 6000


def test_a_report_of_another_version_of_the_harness_is_read(tmp_path: Path) -> None:
    """What it adds is passed over, what this version added may be missing."""
    results = report()
    results["moon"] = "full"
    for each in results["cells"]:
        each["mood"] = {"good": True}
        for name in ("noise", "spread", "scope", "before", "after"):
            if each["latency_ms"]:
                del each["latency_ms"][name]
    write(tmp_path, results)
    assert main(["diff", "rtx16", "rtx17", "--reports", str(tmp_path)]) == 1


BROKEN: dict[str, Any] = {
    "half": '{"schema": 1,',
    "list": "[]",
    "bare": '{"schema": 2}',
    "steps": {"steps": {"details": [], "variants": [3]}},
    "target": {"targets": [3]},
    "deep": "[" * 100_000,
    "bytes": "\udcff",
    "cells": {"cells": 3},
    "cell": {"cells": [3]},
    "latency": ("latency_ms", {"median": "a"}),
    "class": ("class", "fine"),
    "claims": ("claims", [99]),
}


@pytest.mark.parametrize("kind", sorted(BROKEN))
def test_a_broken_file_is_one_sentence(tmp_path: Path, capsys: Capture, kind: str) -> None:
    """And exit code 2, whatever is wrong with it."""
    broken = BROKEN[kind]
    results = report()
    if isinstance(broken, str):
        (tmp_path / "results.json").write_text(broken, errors="surrogateescape")
    else:
        if isinstance(broken, dict):
            results.update(broken)
        else:
            cell(results, "qdq", "rtx17")[broken[0]] = broken[1]
        write(tmp_path, results)
    assert main(["diff", "rtx16", "rtx17", "--reports", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "results.json that this" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rtx16"], "the following arguments are required: B"),
        (["rtx16", "rtx71"], "did you mean"),
        (["{old}", "rtx17"], "two targets or two reports"),
        (["{old}", "{new}", "--target", "rtx71"], "do not both have"),
        (["{old}", "nowhere.json"], "cannot be read"),
        (["rtx16", "rtx17", "--target", "rtx17"], "--target is for two reports"),
    ],
)
def test_bad_usage_is_one_sentence(
    two_reports: tuple[Path, Path], capsys: Capture, arguments: list[str], said: str
) -> None:
    """And exit code 2, which no regression gives."""
    old, new = two_reports
    words = [word.format(old=old, new=new) for word in arguments]
    assert main(["diff", *words, "--reports", str(old)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_reports_without_a_common_measured_target_are_refused(tmp_path: Path, capsys: Capture) -> None:
    """Nothing to compare is no equality."""
    results = report()
    results["targets"] = [{**target, "stamps": None} for target in results["targets"]]
    old, new = write(tmp_path / "a", results), write(tmp_path / "b", results)
    assert main(["diff", str(old), str(new)]) == 2
    assert "that was measured" in capsys.readouterr().err


def test_two_reports_name_each_target_and_the_unchanged_ones_last(
    two_reports: tuple[Path, Path], capsys: Capture
) -> None:
    old, new = map(str, two_reports)
    assert main(["diff", new, old]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("rtx17: ")
    assert "2 break" in lines[0]
    assert re.findall(r"\w+", lines[-1]) == ["unchanged", "rtx14", "rtx15", "rtx16", "ort131"]
    assert main(["diff", old, old]) == 0
    assert len(re.findall(r"\w+", capsys.readouterr().out)) == 6


def test_a_part_fails_a_step_only_if_it_is_named(two_reports: tuple[Path, Path]) -> None:
    old, new = map(str, two_reports)
    assert main(["diff", new, old, "--fail-on", "class"]) == 1
    assert main(["diff", new, old, "--fail-on", "precision,latency"]) == 0
    assert main(["diff", new, old, "--fail-on", "none"]) == 0
    assert main(["diff", new, old, "--fail-on", "speed"]) == 2


def test_markdown_has_a_headline_a_table_and_a_fold(two_reports: tuple[Path, Path], capsys: Capture) -> None:
    old, new = map(str, two_reports)
    assert main(["diff", new, old, "--markdown"]) == 1
    text = capsys.readouterr().out
    head, _, *table = text.partition("<details>")[0].splitlines()
    assert head.startswith("### Breaks: 2, of ")
    assert [line.split(" | ")[:3] for line in table if "`rtx17`" in line] == [
        ["| Breaks", "`rtx17`", "`conv_silu.qdq`"],
        ["| Breaks", "`rtx17`", "`conv_silu.qdq-between`"],
    ]
    assert text.count("<details>") == text.count("</details>") == 1
    assert text.endswith("`rtx15`, `rtx16`, `ort131`.\n")


def test_markdown_of_hostile_or_endless_text_fits_a_comment(tmp_path: Path, capsys: Capture) -> None:
    """A cell of a table ends with its line, mentions nobody and opens no tag."""
    results = report()
    (case,) = results["cases"]
    models = {variant["name"]: variant for variant in case["variants"]}
    row = [each for each in results["cells"] if each["variant"] == "qdq"]
    for number in range(900):
        name = f"more|<b>@somebody\n{number}" + "n" * 200
        case["variants"].append({**models["fp32"], "name": name})
        results["steps"]["variants"].append(results["steps"]["variants"][0])
        results["cells"] += [{**each, "variant": name, "claims": [], "text": "a|b\n<i>@x"} for each in row]
    write(tmp_path, results)
    assert main(["diff", "rtx16", "rtx17", "--markdown", "--reports", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert len(text.encode()) < 65_536
    assert text.endswith("has the rest.*\n")
    rows = [line for line in text.splitlines() if line.startswith("| Breaks")]
    assert len(rows) > 50
    assert "<i>" not in text
    assert "\\<i\\>@<!-- -->x" in text
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in rows)


def test_the_names_that_the_engine_loses_are_listed_with_their_remedies(
    tmp_path: Path, capsys: Capture
) -> None:
    write(tmp_path, report())
    main(["diff", "trt86", "trt102", "--reports", str(tmp_path)])
    text = " ".join(capsys.readouterr().out.split())
    assert "Builder.build_engine" in text
    assert "instead: builder.build_serialized_network" in text
    main(["diff", "trt86", "trt102", "--json", "--reports", str(tmp_path)])
    (found,) = json.loads(capsys.readouterr().out)
    assert "Builder.build_engine" in {each["name"] for each in found["removed"]}
    # TensorRT for RTX is another product.
    main(["diff", "rtx16", "rtx17", "--reports", str(tmp_path)])
    assert "Gone from" not in capsys.readouterr().out
