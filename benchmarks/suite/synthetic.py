"""A made-up matrix and its cases, as files: so many cells, the same at every call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: In the proportions of a real matrix: two targets in five are measured, and a case has twenty variants.
TARGETS = 50
MEASURED = 20
VARIANTS_A_CASE = 20
#: Selects one cell, whatever the size, by -k.
ONE = "case0000 and variant07 and t001"
_MODULE = '''
"""Problem number {number}."""

from onnx import TensorProto, helper

from harness.case import Case, Class, Expectation, Link, Variant

LINK = Link("https://example.org/{number}", "issue {number}")


def build():
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="relu")], "graph", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CASE = Case(
    name="case{number:04}",
    title="Problem number {number}",
    summary="The builder refuses a convolution that stands between two others.",
    links=(LINK,),
    variants=tuple(
        Variant(
            name=f"variant{{index:02}}",
            title=f"Variant {{index}} of problem {number}",
            build=build,
            precision=(),
            expectations=(Expectation.reported(Class.BUILD_FAILED, "<1.10", LINK),),
        )
        for index in range({variants})
    ),
)
'''


def write(folder: Path, cells: int) -> None:
    """Write matrix.yaml and cases/ of about so many cells into a folder."""
    cases = max(1, cells // (TARGETS * VARIANTS_A_CASE))
    (folder / "matrix.yaml").write_text(_matrix(), encoding="utf-8")
    (folder / "cases").mkdir()
    for number in range(cases):
        text = _MODULE.format(number=number, variants=VARIANTS_A_CASE).lstrip()
        (folder / "cases" / f"case{number:04}.py").write_text(text, encoding="utf-8")
    (folder / "cases" / "measured.yaml").write_text(_measured(cases), encoding="utf-8")


def _version(index: int) -> str:
    return f"1.{index + 1}.0"


def _matrix() -> str:
    targets = [
        f'  t{index:03}:\n    engine: onnxruntime\n    version: "{_version(index)}"\n'
        f"    packages: [onnxruntime=={_version(index)}]\n    grade: guessed\n"
        for index in range(TARGETS)
    ]
    return "schema: 1\ntargets:\n" + "".join(targets)


def _measured(cases: int) -> str:
    cells = "".join(
        f"    case{number:04}[variant{index:02}]: built\n"
        for number in range(cases)
        for index in range(VARIANTS_A_CASE)
    )
    return "schema: 1\n" + "".join(
        f"t{index:03}:\n  engine: onnxruntime\n  version: {_version(index)}\n"
        f"  measured: '2026-01-01'\n  cells:\n{cells}"
        for index in range(MEASURED)
    )
