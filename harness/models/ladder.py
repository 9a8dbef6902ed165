"""Whether quantisation is at fault: a model as it is, without its Q/DQ, and in FP16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.models.bench import works
from harness.models.check import engine_made, ran
from harness.models.rewrites import half, unquantised
from harness.words import Word

if TYPE_CHECKING:
    import onnx

    from harness.judge.cell import Judged


class Fault(Word):
    """Whether quantisation keeps a model from working on a target."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Ladder:
    """What becomes of a model as it is, without Q/DQ and in FP16 without Q/DQ; None for a rung that cannot be made."""

    as_it_is: Judged
    without: Judged | None
    in_half: Judged | None

    @property
    def fault(self) -> Fault:
        """Tell whether Q/DQ is at fault: it fails or loses its precision with Q/DQ, and is built without."""
        if works(self.as_it_is):
            return Fault.NO
        if self.without is None:
            return Fault.NO if ran(self.as_it_is) else Fault.UNKNOWN
        if not (ran(self.as_it_is) and ran(self.without)):
            return Fault.UNKNOWN
        return Fault.YES if engine_made(self.without) else Fault.NO


def ladder(model: onnx.ModelProto, as_it_is: Judged, attempt: Callable[[onnx.ModelProto], Judged]) -> Ladder:
    """Return the rungs of a model, of which it is known what becomes of it as it is."""
    plain = unquantised(model)
    halved = half(model if plain is None else plain)
    rungs = [None if each is None else attempt(each) for each in (plain, halved)]
    return Ladder(as_it_is, *rungs)
