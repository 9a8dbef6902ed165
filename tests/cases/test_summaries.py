"""What the summaries of cases say of TensorRT 8.6.1 and 10.6.0, put to the published results."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from harness.known.model import Known
from harness.report.model import load_results
from harness.words import GOOD, Class

pytestmark = pytest.mark.unit

PUBLISHED = Path(__file__).parents[2] / "reports" / "published" / "results.json.xz"
BOTH = ("trt86", "trt106")


@cache
def cells() -> dict[str, Known]:
    return {cell.id: cell for cell in load_results(PUBLISHED).cells}


def median(name: str) -> float:
    latency = cells()[name].latency
    assert latency is not None
    return latency.median


def test_depthwise_convolutions_of_few_channels_and_groups() -> None:
    found = cells()
    for channels in (2, 3, 6, 30):
        assert found[f"depthwise_qdq.qdq-c{channels}-trt86"].cls is Class.BUILD_FAILED
        assert found[f"depthwise_qdq.qdq-c{channels}-trt106"].chip == "INT8 0/1"
    for target in BOTH:
        for group in (2, 3, 4, 6, 8, 12, 16, 48):
            assert found[f"depthwise_qdq.qdq-group{group}-{target}"].chip == "INT8 0/1"
        assert found[f"depthwise_qdq.qdq-group32-{target}"].chip == "INT8 1/1"
        for slow, quick in ((3, 2), (6, 4)):
            names = (f"depthwise_qdq.qdq-group{each}-{target}" for each in (slow, quick))
            assert median(next(names)) > 2 * median(next(names))


def test_an_fp8_convolution_is_many_times_slower_depthwise() -> None:
    assert median("fp8_conv.depthwise-trt106") > 10 * median("fp8_conv.dense-trt106")


@pytest.mark.parametrize("target", BOTH)
def test_what_holds_of_both_versions(target: str) -> None:
    found = cells()
    for name in ("up-per-channel", "up-per-tensor", "up-axis0", "up-odd"):
        assert found[f"qdq_shapes.{name}-{target}"].chip == "INT8 1/1"
    for name in ("up-group4", "up-depthwise", "up3d", "conv3d"):
        assert found[f"qdq_shapes.{name}-{target}"].chip == "INT8 0/1"
    assert found[f"qdq_shapes.up-dilated-{target}"].cls in GOOD
    assert found[f"qdq_placement.concat-after-{target}"].chip == "INT8 3/3"
    assert found[f"qdq_placement.concat-one-scale-{target}"].chip == "INT8 2/3"
    assert found[f"qdq_scale.int8-conv-vector-{target}"].chip == "INT8 1/1"
    assert found[f"gpu_numbers.grid-sample-20-{target}"].cls is Class.INACCURATE


def test_a_convolution_in_fp8_wants_a_strongly_typed_network() -> None:
    found = cells()
    assert found["fp8_conv.dense-trt106"].chip == "FP8 1/1"
    for name in ("fp8_conv.dense-flags", "qdq_scale.fp8-conv-vector", "qdq_scale.fp8-conv-scalar"):
        assert found[f"{name}-trt106"].chip == "FP8 0/1"
