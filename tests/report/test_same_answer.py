"""The page's scripts recognise what the harness recognises, with the same patterns and as fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.judge import engine_errors, place
from harness.judge.diagnosis import load_signatures
from harness.judge.portable import javascript
from tests.judge.hostile import END, beginnings
from tests.judge.said import outcome
from tests.judge.texts import NEAR_MISSES, NOTES, TEXTS
from tests.report.errors_js import answer, measured, said, scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from harness.record.outcome import Outcome

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with scripts(browser) as made:
        yield made


def same(page: Page, outcomes: list[Outcome]) -> int:
    """Hold each answer of the script against Python's; returns how many of them are a diagnosis."""
    theirs = page.evaluate("(every) => every.map((one) => diagnosed(known, one))", list(map(said, outcomes)))
    ours = list(map(answer, outcomes))
    for given, found, expected in zip(outcomes, theirs, ours, strict=True):
        assert found == expected, given
    return sum(one is not None for one in ours)


def test_each_text_of_the_diagnosis_gets_the_same_answer(page: Page) -> None:
    """Alone, among noise, and with what is nearly one."""
    noise = (
        "errors",
        "[checkMacros.cpp::catchCudaError::229] Error Code 1: Cuda Runtime (In catchCudaError at x)",
    )
    parsing = ("errors", 'ModelImporter.cpp:138: While parsing node number 2 [Mish -> "y"]:')
    plain = [outcome((place, text)) for _, place, text in (*TEXTS, *NEAR_MISSES)]
    around = [outcome(noise, parsing, (place, text), noise) for _, place, text in TEXTS]
    later = [outcome((place, text), failed_phase="run") for _, place, text in TEXTS]
    assert same(page, plain + around + later) > 2 * len(TEXTS)
    assert same(page, [outcome(("warnings", text)) for _, text in NOTES]) == 0


def test_two_texts_at_once_get_the_same_answer(page: Page) -> None:
    """The order of the signatures decides, and not that of the lines."""
    every = [(place, text) for _, place, text in TEXTS]
    pairs = zip(every, every[7:] + every[:7], strict=True)
    assert same(page, [outcome(*pair) for pair in pairs]) == len(TEXTS)


def test_each_measured_record_gets_the_same_answer(page: Page) -> None:
    assert same(page, list(measured())) >= 20


def test_operators_are_those_of_onnx(page: Page) -> None:
    """A plugin's name is not among them, nor one of another domain."""
    asked = ["Mish", "Conv", "CompatIdentity", "", "BiasGelu", "Binarizer", "Upsample"]
    found = page.evaluate("(names) => names.map((name) => known.operators.has(name))", asked)
    assert found == [True, True, False, False, False, False, True]


FINDERS = {
    name: value.pattern
    for module in (place, engine_errors)
    for name, value in vars(module).items()
    if hasattr(value, "pattern") and not name.startswith("_")
}
PATTERNS = FINDERS | {
    f"{signature.id}-{number}": pattern.regex.pattern
    for signature in load_signatures()
    for number, pattern in enumerate(signature.patterns)
}
#: Of all texts that grow eightfold: between 8, the proportion, and 64, the square.
MOST = 40
#: Searches as test_linear.py does, first where a square is still bearable; a pause of the machine is tried again.
SEARCH = """([source, beginnings, end, most]) => {
  const pattern = new RegExp(source, "u");
  const time = (text) => { const start = performance.now(); pattern.exec(text); return performance.now() - start; };
  const made = ([before, unit], length) => before + unit.repeat(Math.floor(length / unit.length)) + end;
  const slow = (one, length, bearable, unbearable) => {
    const first = time(made(one, length));
    if (first < bearable) return false;
    // A square that is not told here would take minutes at a megabyte, and no time-out reaches it there.
    if (Math.min(first, ...[0, 1].map(() => time(made(one, length)))) > unbearable) return true;
    for (let round = 0; round < 5; round += 1) {
      const [short, long] = [made(one, length / 8), made(one, length)];
      const least = (text) => Math.min(...[0, 1, 2, 3, 4].map(() => time(text)));
      if (least(long) < most * Math.max(least(short), 0.1)) return false;
    }
    return true;
  };
  return beginnings.filter((one) => slow(one, 40000, 5, 60) || slow(one, 1000000, 20, 3000));
}"""


@pytest.mark.parametrize("part", range(8))
def test_a_search_of_a_megabyte_grows_with_it_and_no_faster(page: Page, part: int) -> None:
    for name in sorted(PATTERNS)[part::8]:
        asked = [javascript(PATTERNS[name]), beginnings(PATTERNS[name]), END, MOST]
        assert page.evaluate(SEARCH, asked) == [], name


@pytest.mark.parametrize("text", [r"(?P<node>\S+) has no runners", r"undefined symbol: .*nvdla"])
def test_a_pattern_that_grows_faster_is_noticed_there_too(page: Page, text: Any) -> None:
    assert page.evaluate(SEARCH, [javascript(text), beginnings(text), END, MOST])
