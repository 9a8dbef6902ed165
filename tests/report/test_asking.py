"""A question is answered by what it names, in the terminal and on the page alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.report.asking import QuestionAnswer
from harness.report.asking import answering as answers_of
from harness.report.lexicon import lexicon
from harness.report.model import load_results
from harness.report.page import render
from tests.report.browsing import answering
from tests.report.published import PUBLISHED, data

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUESTIONS = (Path(__file__).with_name("data") / "questions.txt").read_text(encoding="utf-8").splitlines()


@cache
def box() -> Callable[[str], QuestionAnswer]:
    return answers_of(data(), lambda before, after: f"{before} {after}")


def asked(question: str) -> QuestionAnswer:
    return box()(question)


def said(question: str) -> str:
    return "\n".join(line.text for line in asked(question).lines)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("question", "step"),
    [
        ("upgrade from 8.6 to 10.6", ("trt86", "trt106")),
        ("TensorRT 8.6 to TensorRT 10.6", ("trt86", "trt106")),
        ("8.6 vs 10.6", ("trt86", "trt106")),
        ("trt86 and trt106", ("trt86", "trt106")),
        ("what is slower in 10.6 than in 8.6?", ("trt86", "trt106")),
        ("10 to 11", ("trt106", "trt115")),
        ("8.6 to 10.3 on Jetson", ("l4t86", "l4t103")),
        ("JetPack 5.1 to 6.2", ("l4t85", "l4t103")),
        ("RTX 1.4 to 1.7", ("rtx14", "rtx17")),
        ("engine built with 10.3 on 10.6?", None),
        ("RTX 5090", None),
        ("yolov8 with 10 classes", None),
    ],
)
def test_two_versions_are_a_step_within_one_product(question: str, step: tuple[str, str] | None) -> None:
    assert asked(question).step == step


@pytest.mark.unit
@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("My GPU is an L4, which TensorRT?", "SM 8.9): TensorRT from 8.6 or before it to 11.5"),
        ("Tesla V100", "to 10.4; 10.6 does not take it"),
        ("RTX5090", "from 10.8 to 11.5"),
        ("sm_75", "Turing, SM 7.5"),
        ("GTX 1080 Ti with 10.0", "TensorRT 10.0 does not take GTX 1080 Ti"),
        ("does an RTX 3090 have FP8?", "RTX 3090 (SM 8.6) has no FP8: it takes SM 8.9 or later"),
        ("10.8", "10.8 is no column here; nearest: TensorRT 10.7 and TensorRT 10.9"),
        ("can a plan made with 10.6 be loaded by 8.6?", "no engine runs on an older TensorRT"),
        ("engine built with 8.6 on 11", "across majors only from 8 to 10 and from 10 to 11"),
        ("unsupported operators 8.6", "AffineGrid, Attention"),
        ("Gelu on 10.6", "Gelu"),
        ("what TensorRT is in JetPack 6.2?", "TensorRT on Jetson 10.3"),
        ("NGC 24.07", "TensorRT 10.2"),
        ("opset 15", "TensorRT 8.5 and later"),
        ("Latency 8.6 vs 10.6, conv+silu", "µs"),
        ("latency 10.6 vs 10.9", "Nothing that fits was timed"),
        ("BF16 depthwise wrong", "gives wrong numbers on 10.6 (measured)"),
        ("frobnicator", "Nothing here is called so"),
        ("\udcff", "Nothing here is called so"),
    ],
)
def test_it_is_answered_by_what_was_asked(question: str, part: str) -> None:
    assert part in said(question)


@pytest.mark.unit
def test_the_names_of_cards_are_no_versions_and_numbers_in_words_neither() -> None:
    found = asked("RTX 4090 and resnet50, opset 17, python 3.10, CUDA 12.4, 8 GB, TensorRT 10.6")
    assert (found.step, found.columns) == (None, ("trt106",))
    told = " ".join(line.text for line in found.lines)
    assert all(part in told for part in ("RTX 4090 (Ada, SM 8.9)", "Opset 17:", "CUDA 12.4:"))
    assert "SM 5" not in told


@pytest.mark.unit
def test_every_name_of_a_card_is_found() -> None:
    for name in lexicon(data())["cards"]:
        assert asked(f"is a {name} ok?").lines[0].text.startswith(f"{name} ("), name


@pytest.mark.browser
def test_the_page_gives_the_same_answers(browser: Browser, tmp_path: Path) -> None:
    results = load_results(PUBLISHED)
    place = tmp_path / "index.html"
    # The script keeps its names to itself: this page tells one of them, and its policy names another script.
    ready = "document.documentElement.dataset.ready="
    page_text = render(data(), {}).replace(ready, f"window.answerTo=answerTo;{ready}")
    place.write_text(page_text.replace('http-equiv="Content-Security-Policy"', ""), encoding="utf-8")
    page = browser.new_page()
    page.goto(place.as_uri())
    answering(page)
    shorts = {target.id: target.short for target in results.targets}

    def headline(*sides: str) -> str:
        text = results.step(*sides).headline
        for side in sides:
            text = text.replace(side, shorts[side])
        return text

    own_answer = answers_of(data(), headline)
    assert len(QUESTIONS) >= 120
    for question in QUESTIONS:
        own = own_answer(question)
        assert page.evaluate(
            """question => {
              const { lines, step, columns, rows } = answerTo(question);
              const told = lines.map(({ text, href }) => [text, href]);
              return { lines: told, step, columns, rows: rows.map(({ id }) => id) };
            }""",
            question,
        ) == {
            "lines": [[line.text, line.href] for line in own.lines],
            "step": list(own.step) if own.step else None,
            "columns": list(own.columns),
            "rows": list(own.rows),
        }, question
    page.close()
