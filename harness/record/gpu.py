"""The GPU that took part in an outcome: what tells one machine's result from another's; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.record.outcome import Stamps


@dataclass(frozen=True, order=True)
class Gpu:
    """A GPU, by what tells results apart: compute capability ("8.9"), product ("NVIDIA L4"), driver branch ("580").

    What an engine does goes by the compute capability, its architecture; product and driver branch say how alike two
    machines of one architecture are.
    """

    compute_capability: str
    product: str
    driver: str = ""

    def __str__(self) -> str:
        driver = f", driver {self.driver}" if self.driver else ""
        return f"{self.product} (compute capability {self.compute_capability}{driver})"


def gpu_of(stamps: Stamps) -> Gpu | None:
    """Return the GPU that an agent saw, or None where it saw none, as where an engine only built on a CPU."""
    seen = stamps.environment
    capability, product = seen.get("compute_capability", ""), seen.get("gpu", "")
    if not capability or not product:
        return None
    return Gpu(capability, product, seen.get("driver", "").partition(".")[0])
