"""Times as a reader says them."""

from __future__ import annotations

import math

import pytest

from harness.text import milliseconds

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0 µs"),
        (0.0432, "43.2 µs"),
        (0.09996, "100 µs"),
        (0.1, "0.1 ms"),
        (1.25, "1.25 ms"),
        (10.25, "10.3 ms"),
        (999.9, "1000 ms"),
        (1000.5, "1001 ms"),
        (1499.6, "1500 ms"),
        (12345678.5, "12345679 ms"),
        (math.inf, "inf ms"),
    ],
)
def test_a_time_has_three_digits_and_halves_go_up_as_in_the_script(value: float, said: str) -> None:
    assert milliseconds(value) == said
