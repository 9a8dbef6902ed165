"""Which GPU an outcome is of."""

from __future__ import annotations

import pytest

from harness.record.gpu import Gpu, gpu_of
from harness.record.outcome import Stamps

pytestmark = pytest.mark.unit

T4 = {"gpu": "Tesla T4", "compute_capability": "7.5", "driver": "535.183.01", "gpu_uuid": "GPU-1"}


def test_a_gpu_is_told_by_architecture_product_and_driver_branch() -> None:
    """Two patches of one driver branch are one GPU, and two cards of one product are."""
    one = gpu_of(Stamps(environment=T4))
    assert one == Gpu("7.5", "Tesla T4", "535")
    assert gpu_of(Stamps(environment={**T4, "driver": "535.54", "gpu_uuid": "GPU-2"})) == one
    assert gpu_of(Stamps(environment={**T4, "driver": "580.1"})) != one
    assert str(one) == "Tesla T4 (compute capability 7.5, driver 535)"


@pytest.mark.parametrize("missing", ["gpu", "compute_capability"])
def test_an_outcome_of_a_machine_without_a_gpu_is_of_none(missing: str) -> None:
    """A driver alone is no GPU."""
    assert gpu_of(Stamps(environment={key: text for key, text in T4.items() if key != missing})) is None


def test_a_driver_that_is_not_known_is_left_out() -> None:
    """As where the driver's library does not say it."""
    found = gpu_of(Stamps(environment={key: text for key, text in T4.items() if key != "driver"}))
    assert found == Gpu("7.5", "Tesla T4") == Gpu("7.5", "Tesla T4", "")
    assert str(found) == "Tesla T4 (compute capability 7.5)"
