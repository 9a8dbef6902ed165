"""Every variant on every version of TensorRT for RTX: each layer is read, each wanted precision known."""

from __future__ import annotations

import pytest

from harness.words import Class, Precision
from tests import needs
from tests.integration.runs import Result, project_cells, run

# All cells of four versions: `make matrix` runs them as well, and the night asks this of them.
pytestmark = [pytest.mark.integration, pytest.mark.long]

TARGETS = ("rtx14", "rtx15", "rtx16", "rtx17")
#: Classes that an engine was built for.
BUILT = (Class.BUILT, Class.OK, Class.PRECISION_LOST)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """What became of each cell."""
    needs.network()
    cells = [cell for cell in project_cells() if cell.target.name in TARGETS]
    return run(cells, "venv", tmp_path_factory.mktemp("layers"))


@pytest.fixture(scope="module")
def built(results: dict[str, Result]) -> dict[str, Result]:
    """The cells whose engine was built."""
    return {name: result for name, result in results.items() if result.judged.classification.cls in BUILT}


def test_every_version_builds_a_good_part_of_the_variants(
    results: dict[str, Result], built: dict[str, Result]
) -> None:
    """Else the tests below would look at nothing."""
    for target in TARGETS:
        every = [name for name in results if name.endswith(f"-{target}")]
        assert len(every) > 50
        assert len([name for name in built if name.endswith(f"-{target}")]) > len(every) / 10


def test_no_layer_is_left_unread(results: dict[str, Result], built: dict[str, Result]) -> None:
    unread = {name: result.judged.outcome.unparsed_layers for name, result in results.items()}
    assert {name for name, count in unread.items() if count} == set()
    assert {name for name, result in built.items() if not result.judged.outcome.layers} == set()


def _casts_inside(result: Result) -> bool:
    """Tell whether each kernel whose precision is open is one that casts."""
    names = [layer.name for layer in result.judged.outcome.layers if layer.precision == Precision.UNKNOWN]
    return bool(names) and all("Cast" in name for name in names)


def test_the_precision_of_every_node_that_matters_is_known(built: dict[str, Result]) -> None:
    """What a case wants by name is reached or lost, never open, wherever the engine was built.

    A node in a fused kernel that casts inside may be open: the engine tells the types at the kernel's ends alone.
    """
    unknown = {
        (name, node)
        for name, result in built.items()
        if not _casts_inside(result)
        for node, _ in result.judged.cell.variant.precision or ()
        if result.judged.precision.get(node, Precision.UNKNOWN) is Precision.UNKNOWN
    }
    assert unknown == set()


def test_every_convolution_of_an_engine_has_a_precision(built: dict[str, Result]) -> None:
    """Also where no variant asks for one: that is what the report's chip shows."""
    unknown = {
        (name, node.name)
        for name, result in built.items()
        for node in result.judged.outcome.nodes
        if node.op == "Conv"
        and result.judged.precision.get(node.name, Precision.UNKNOWN) is Precision.UNKNOWN
    }
    assert unknown == set()
