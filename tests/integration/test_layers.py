"""Every variant on every version of TensorRT for RTX: each layer is read, each wanted precision known."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.words import Class, Precision
from tests import needs
from tests.integration.runs import Result, project_cells, run

# All cells of four versions: `make matrix` runs them as well, and the night asks this of them.
pytestmark = [pytest.mark.integration, pytest.mark.long]

TARGETS = ("rtx14", "rtx15", "rtx16", "rtx17")
#: Classes that an engine was built for.
BUILT = (Class.BUILT, Class.OK, Class.PRECISION_LOST)


def _casts_inside(result: Result) -> bool:
    """Tell whether each kernel whose precision is open is one that casts."""
    names = [layer.name for layer in result.judged.outcome.layers if layer.precision == Precision.UNKNOWN]
    return bool(names) and all("Cast" in name for name in names)


def test_each_layer_is_read_and_the_precision_of_every_node_that_matters_is_known(tmp_path: Path) -> None:
    """The report's chip, of nodes that a case wants by name and of convolutions.

    A node in a fused kernel that casts inside may be open: the engine tells the types at the kernel's ends alone.
    """
    needs.network()
    results = run((cell for cell in project_cells() if cell.target.name in TARGETS), "venv", tmp_path)
    built = {name: result for name, result in results.items() if result.judged.classification.cls in BUILT}
    # Else the rest would look at nothing.
    assert all(sum(name.endswith(f"-{target}") for name in built) > 10 for target in TARGETS)
    assert {name for name, result in results.items() if result.judged.outcome.unparsed_layers} == set()
    assert {name for name, result in built.items() if not result.judged.outcome.layers} == set()
    unknown = set()
    for name, result in built.items():
        judged = result.judged
        wanted = [] if _casts_inside(result) else [node for node, _ in judged.cell.variant.precision or ()]
        convolutions = [node.name for node in judged.outcome.nodes if node.op == "Conv"]
        unknown |= {
            (name, node)
            for node in (*wanted, *convolutions)
            if judged.precision.get(node, Precision.UNKNOWN) is Precision.UNKNOWN
        }
    assert unknown == set()
