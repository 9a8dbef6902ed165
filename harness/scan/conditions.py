"""A test of TensorRT's version, in whatever language: which versions pass."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.matrix.interface import Numbers

_COMPARED: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge, ">": operator.gt, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_OPPOSITE = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
SIGNS = frozenset(_OPPOSITE)
#: Below these a number is a major, two digits and one, or a major of one digit.
_MOST_MAJOR, _MOST_TENS, _MOST_THOUSANDS = 40, 1000, 10_000
_LEAST_HUNDREDS, _LEAST_THOUSANDS = 500, 5000


@dataclass(frozen=True)
class Condition:
    """A test of the version, `sign` and `numbers`; one that cannot be read has no sign, and holds for none."""

    sign: str = ""
    numbers: tuple[int, ...] = ()

    def holds(self, version: Numbers) -> bool:
        """Tell whether a version is known to pass."""
        return bool(self.sign) and _COMPARED[self.sign](version[: len(self.numbers)], self.numbers)

    def negated(self) -> Condition:
        """Return the test of what stands behind `else`."""
        return Condition(_OPPOSITE[self.sign], self.numbers) if self.sign else self


UNREAD = Condition()


def decoded(number: int) -> tuple[int, ...]:
    """Return the version that one number stands for: a major, MAJOR * 10 + MINOR, or one of NVIDIA's own ways."""
    if number < _MOST_MAJOR:
        return (number,)
    if number < _MOST_TENS:
        # 85 and 100, but 805 by MAJOR * 100.
        return divmod(number, 100) if number >= _LEAST_HUNDREDS else divmod(number, 10)
    if number < _MOST_THOUSANDS:
        # 8601 is 8.6.1; 1006 is 10.6 by MAJOR * 100.
        return (number // 1000, number // 100 % 10) if number >= _LEAST_THOUSANDS else divmod(number, 100)
    return number // 10_000, number // 100 % 100
