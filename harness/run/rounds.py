"""Cells in steps, so that several are built before a device is held alone for a round of their timed runs."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from harness.errors import InfraError
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.run.gpus import Device

#: Seconds that a cell that is built waits for a round, and bytes of engines that may wait: a round stops all builds.
_PATIENCE, _LARGE = 90.0, 256 << 20


class Wait(NamedTuple):
    """A cell's need for its next step: a device alone; `size` bytes of its engine are kept until then.

    `soon` asks that no other cell is begun before: the cell has a child to itself.
    """

    device: Device
    size: int = 0
    soon: bool = False


class Recorded(NamedTuple):
    """The record of a cell and its whole log."""

    outcome: Outcome
    log: str


class Later(Enum):
    """Tells that a cell is to be run again in a child of its own, which ends the one that the others share."""

    AT_THE_END = "at the end"


#: A cell's way: it yields `Wait` to go on with the device alone, `Later` to be put off, and None if it has no need, or
#: no longer.
Steps = Generator["Wait | Later | None", None, Recorded]
Found = Wait | Later | Recorded | None


def step(steps: Steps, trouble: InfraError | None = None) -> Found:
    """Take a cell's next step, telling it of trouble there was; returns the step's yield, or the record."""
    try:
        return next(steps) if trouble is None else steps.throw(trouble)
    except StopIteration as end:
        recorded: Recorded = end.value
        return recorded


def hold(device: Device, waiting: Sequence[Steps]) -> list[Found]:
    """Take cells through the steps for which they waited, one behind the other, then let go; returns the yield of each.

    A device that is not to be had is told to each.
    """
    try:
        with device.alone():
            return [step(steps) for steps in waiting]
    except InfraError as error:
        return [step(steps, error) for steps in waiting]


def whole(steps: Steps) -> Recorded:
    """Take a cell through all its steps, and hold each device that it waits for."""
    found = step(steps)
    while not isinstance(found, Recorded):
        found = hold(found.device, [steps])[0] if isinstance(found, Wait) else step(steps)
    return found


class Round:
    """The cells of one worker that are under way."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Cell, Steps, Wait]] = []
        self._later: list[tuple[Cell, Steps]] = []
        self._ended: list[tuple[Cell, Recorded]] = []
        self._since = 0.0

    def begin(self, cell: Cell, steps: Steps) -> None:
        """Take a cell as far as it goes without a device."""
        self._go_on(cell, steps, step(steps))

    def resume(self) -> bool:
        """Go on with a cell that was put off; False without one."""
        if not self._later:
            return False
        self.begin(*self._later.pop(0))
        return True

    def _go_on(self, cell: Cell, steps: Steps, found: Found) -> None:
        while found is None:
            found = step(steps)
        if isinstance(found, Recorded):
            self._ended.append((cell, found))
        elif isinstance(found, Later):
            self._later.append((cell, steps))
        else:
            self._since = self._since if self._waiting else time.monotonic()
            self._waiting.append((cell, steps, found))

    @property
    def waits(self) -> bool:
        """Tell whether any cell waits for a device."""
        return bool(self._waiting)

    @property
    def due(self) -> bool:
        """Tell whether to hold the device now: cells have waited long, or another holds it and builds wait."""
        waits = [wait for _, _, wait in self._waiting]
        if not waits:
            return False
        full = time.monotonic() - self._since > _PATIENCE or sum(wait.size for wait in waits) > _LARGE
        return full or any(wait.soon for wait in waits) or waits[0].device.wanted()

    def hold(self) -> None:
        """Hold the device of the cells that wait, take each through its timed run, then let go and take all on."""
        now, self._waiting = sorted(self._waiting, key=lambda one: not one[2].soon), []
        if now:
            found = hold(now[0][2].device, [steps for _, steps, _ in now])
            for (cell, steps, _), each in zip(now, found, strict=True):
                self._go_on(cell, steps, each)

    def ended(self) -> Iterator[tuple[Cell, Recorded]]:
        """Yield the cells that have come to their end, each once."""
        while self._ended:
            yield self._ended.pop(0)
