"""What is told of CUDA's codes, in the agent and in a judgement."""

from __future__ import annotations

import pytest

from harness.agent import cuda_errors
from harness.judge.classify import _MACHINE

pytestmark = pytest.mark.unit

#: Codes that say something of the machine and yet may be an engine's own doing.
_EITHER = {2, 801}


def test_every_code_with_a_name_has_advice() -> None:
    assert all(cuda_errors.advice(code) for code in cuda_errors.NAMES)
    assert cuda_errors.advice(700) == ""


@pytest.mark.parametrize(("code", "name"), cuda_errors.NAMES.items())
def test_a_code_in_an_engines_words_is_found(code: int, name: str) -> None:
    """The forms are those of TensorRT's logs and of this project's own sentences."""
    for text in (
        f"createInferBuilder: Error Code 6: API Usage Error (CUDA initialization failure with error: {code})",
        f"[defaultAllocator.cpp::allocate::54] Error Code 1: Cuda Runtime ({code})",
        f"In generateForCurrent at x.cpp:47: cudaError {code}",
    ):
        assert cuda_errors.advice_in(text) == cuda_errors.advice(code)
        assert bool(_MACHINE.search(text)) == (code not in _EITHER)
    if name.startswith("CUDA_ERROR"):
        assert bool(_MACHINE.search(f"cuInit: {code} {name} (text)")) == (code not in _EITHER)


def test_a_text_of_a_megabyte_is_read_once() -> None:
    """What an engine logs may be of any length; in time that grows with its square this would take hours."""
    assert cuda_errors.advice_in("cudaError" + " " * 1_000_000) == ""
    assert not _MACHINE.search("cudaError" + " " * 1_000_000)


@pytest.mark.parametrize(
    "text",
    ["", "Error Code 35: nothing of CUDA", "CUDA error 700", "cudaError 1000", "conv_46", "with error: 9990"],
)
def test_other_numbers_are_no_codes(text: str) -> None:
    assert cuda_errors.advice_in(text) == ""
    assert not _MACHINE.search(text)
