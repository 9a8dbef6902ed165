"""The page's script explains every text as Python does, with the same patterns and as fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.judge import complaints, diagnosis, findings, logs
from harness.judge.signatures import javascript, load_signatures, load_texts
from tests.judge.hostile import END, beginnings
from tests.judge.texts import NEAR_MISSES
from tests.report.errors_js import answer, as_log, measured, scripts
from tests.report.pastes import LOGGERS, NOTHING, PASTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

TEXTS = [each.text for each in load_texts()]
PYTHON = "[11/22/2026-10:00:00] [TRT] [{letter}] {text}"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with scripts(browser) as made:
        yield made


def same(page: Page, texts: list[str]) -> int:
    """Hold each answer of the script against Python's; returns how many of them find something."""
    theirs = page.evaluate("(every) => every.map(answer)", texts)
    ours = list(map(answer, texts))
    for text, found, expected in zip(texts, theirs, ours, strict=True):
        assert found == expected, text
    return sum(bool(one["findings"]) for one in ours)


@pytest.mark.parametrize("form", ["{}", "[E] {}", "[11/22/2026-10:00:00] [W] [TRT] {}", "[V] {}"])
def test_each_text_gets_the_same_answer(page: Page, form: str) -> None:
    """By severity, or without one."""
    assert same(page, [form.format(text) for text in TEXTS]) > (len(TEXTS) // 5)


def test_pastes_near_misses_and_all_texts_at_once_get_the_same_answer(page: Page) -> None:
    every = [text for _, _, text in PASTES] + NOTHING + [text for _, text in LOGGERS]
    assert same(page, every) >= len(PASTES)
    same(page, [text for _, _, text in NEAR_MISSES])
    assert same(page, ["\n".join(TEXTS), "\n".join(f"[E] {text}" for text in TEXTS)]) == 2


def test_each_measured_record_gets_the_same_answer(page: Page) -> None:
    assert same(page, [as_log(outcome, PYTHON) for outcome in measured()]) >= 20


def test_a_flood_gets_the_same_answer(page: Page) -> None:
    """Its middle is dropped alike, and what repeats is kept a few times."""
    words = ("alpha", "beta", "gamma", "delta")
    lines = [
        f"[W] {a}{b}{c}{d} {n}"
        for n in range(100)
        for a in words
        for b in words
        for c in words
        for d in words
    ]
    text = "\n".join([*lines, "[E] Could not find any implementation for node n."])
    assert same(page, [text]) == 1


FINDERS = {
    name: value.pattern
    for module in (complaints, logs, findings, diagnosis)
    for name, value in vars(module).items()
    if hasattr(value, "pattern") and not name.startswith("_")
}
PATTERNS = (
    FINDERS
    | {f"prefix-{number}": regex.pattern for number, regex in enumerate((*logs.PREFIXES, *logs.LACKING))}
    | {
        f"{signature.id}-{number}-{kind}": regex.pattern
        for signature in load_signatures()
        for number, pattern in enumerate(signature.patterns)
        for kind, regex in (("", pattern.regex), ("near", pattern.near), ("unless", pattern.unless))
        if regex
    }
)
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


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_a_search_of_a_megabyte_grows_with_it_and_no_faster(page: Page, part: int) -> None:
    for name in sorted(PATTERNS)[part::8]:
        asked = [javascript(PATTERNS[name]), beginnings(PATTERNS[name]), END, MOST]
        assert page.evaluate(SEARCH, asked) == [], name


@pytest.mark.parametrize("text", [r"(?P<node>\S+) has no runners", r"undefined symbol: .*nvdla"])
def test_a_pattern_that_grows_faster_is_noticed_there_too(page: Page, text: Any) -> None:
    assert page.evaluate(SEARCH, [javascript(text), beginnings(text), END, MOST])
