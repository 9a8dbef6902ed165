"""The rules for every variant of every case module."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.case import (
    Basis,
    Case,
    Class,
    Engine,
    Expectation,
    Role,
    Typing,
    Variant,
    check_variant,
    effective_name,
    load_cases,
    model_sha256,
)
from harness.case.model import serialise
from harness.run.numbers.inputs import make_inputs
from harness.run.numbers.reference import reference

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
CASES = load_cases(ROOT / "cases")
PLATFORMS = ("linux/amd64", "linux/arm64", "jetson")
#: 8.4, 10.6, 10.8, 10.9, 10.11 to 10.15 and 11.1 are of reports; no target has them.
TENSORRT = """
8.4.1 8.5.2 8.5.2.2 8.6.1 8.6.1.6 8.6.2 9.2.0.5 9.3.0.1 10.0.1.6 10.1.0.27 10.2.0.19 10.3.0.26 10.6.0.26 10.7.0.23
10.8.0.43 10.9.0.34 10.11.0.33 10.12.0.36 10.13.3.9 10.14.1.48 10.15.1.29 10.16.1.11 11.0.0.114 11.1.0.106 11.2.1.2
11.4.0.106
"""
VERSIONS = {
    Engine.TENSORRT: tuple(TENSORRT.split()),
    Engine.TENSORRT_RTX: ("1.4.0.76", "1.5.0.114", "1.6.1.120", "1.7.1.116"),
    Engine.ONNXRUNTIME: ("1.17.3", "1.20.0", "1.31.1", "1.32.0"),
}
#: How a tag begins that announces an opset which is newer than the oldest targets parse.
NEW_OPSET = "opset"
#: A model that the checker refuses on purpose, because users have such models.
INVALID = "invalid-onnx"
#: A calibrator that the builder ignores, because the graph has Q/DQ, as a user's script sets it.
IDLE = "idle-calibrator"
#: A model of standard operators that the reference evaluator cannot run all the same.
NO_REFERENCE = "no-reference"
#: Outputs that hold few different values by their nature, such as booleans.
FEW_VALUES = "few-values"

IN_CASES = [(case, variant) for case in CASES for variant in case]
Rule = Callable[[Variant], None]
#: A rule that a test of this module holds every variant to.
RULES: list[Rule] = []


def every_variant(rule: Rule) -> Callable[[], None]:
    """Make a test of a rule, which fails with a line for each variant that breaks it."""

    def test() -> None:
        broken = []
        for case, variant in IN_CASES:
            try:
                rule(variant)
            except Exception as error:  # noqa: BLE001  (the next variant is held to it all the same)
                broken.append(f"{case.name}.{variant.name}: {type(error).__name__}: {error}")
        assert not broken, "\n".join(broken)

    RULES.append(rule)
    test.__doc__ = rule.__doc__
    return test


@functools.cache
def built(variant: Variant) -> onnx.ModelProto:
    """Return a variant's model, which no test changes."""
    return variant.build()


@every_variant
def test_passes_the_onnx_checker(variant: Variant) -> None:
    """The serialised model is valid ONNX, its stated shapes included, unless a tag says that it is not."""
    model = onnx.load_from_string(serialise(built(variant)))
    if INVALID in variant.tags:
        with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
            onnx.checker.check_model(model, full_check=True)
    else:
        onnx.checker.check_model(model, full_check=True)


@every_variant
def test_builds_the_same_bytes_again(variant: Variant) -> None:
    """Two calls give one model, byte for byte."""
    assert variant.model_bytes() == serialise(built(variant))


def test_bytes_do_not_hang_on_the_hash_seed() -> None:
    """Another process with another PYTHONHASHSEED builds the same models."""
    program = (
        "from pathlib import Path\n"
        "from harness.case import load_cases, model_sha256\n"
        "for case in load_cases(Path('cases')):\n"
        "    for variant in case:\n"
        "        print(case.name, variant.name, model_sha256(variant.model_bytes()))\n"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    here = [
        f"{case.name} {variant.name} {model_sha256(variant.model_bytes())}"
        for case in CASES
        for variant in case
    ]
    assert done.stdout.splitlines() == here


@every_variant
def test_old_parsers_read_it(variant: Variant) -> None:
    """IR and opset are ones that TensorRT 8.5 reads, unless a tag announces a newer opset."""
    model = built(variant)
    opset = max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    announced = [tag for tag in variant.tags if tag.startswith(NEW_OPSET)]
    assert announced == ([f"{NEW_OPSET}{opset}"] if opset > 17 else [])
    assert announced or model.ir_version <= 8


@every_variant
def test_what_it_names_is_in_its_graph(variant: Variant) -> None:
    """Nodes that are wished, marked outputs and profiles: by the check that every case meets, of whomever."""
    check_variant(variant, built(variant))


@every_variant
def test_names_are_told_apart(variant: Variant) -> None:
    """A node is there once, under the name that TensorRT reports; a marked output is no output yet."""
    model = built(variant)
    names = [effective_name(node) for node in model.graph.node]
    assert len(names) == len(set(names))
    assert not set(variant.recipe.mark_outputs) & {value.name for value in model.graph.output}


@every_variant
def test_has_a_finite_reference_that_varies(variant: Variant) -> None:
    """On the harness's inputs the reference evaluator gives finite outputs, none saturated to a constant."""
    model = built(variant)
    inputs = make_inputs(model, variant.recipe.profiles)
    result = reference(model, inputs, also=variant.recipe.mark_outputs)
    if NO_REFERENCE in variant.tags or any(node.domain for node in model.graph.node):
        assert result.outputs is None, f"it has a reference: drop the tag {NO_REFERENCE}"
        assert "does not know" in result.reason or "evaluator failed" in result.reason
        return
    assert result.outputs is not None, f"{result.reason}; if that is a limit of it, tag it {NO_REFERENCE}"
    for name, values in result.outputs.items():
        assert np.all(np.isfinite(values)), name
        least = 1 if FEW_VALUES in variant.tags else min(16, values.size // 2)
        assert np.unique(values).size > least, name


@every_variant
def test_relations_are_stated(variant: Variant) -> None:
    """A workaround, control or twin says what it is to be read against, and that is another variant."""
    if variant.role in (Role.WORKAROUND, Role.CONTROL, Role.TWIN):
        assert variant.counterpart is not None
    assert variant.counterpart != variant.name


def has_twin(case: Case, weak: Variant) -> bool:
    """Tell whether a variant with its precision in the graph is the twin of a weakly typed one.

    One twin serves all weak variants that ask the same of the same graph: other calibrators and parser flags
    need no twin of their own.
    """

    def question(variant: Variant) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        return model_sha256(serialise(built(variant))), variant.recipe.flags, variant.recipe.mark_outputs

    alike = {
        variant.name
        for variant in case
        if variant.recipe.typing is Typing.WEAK and question(variant) == question(weak)
    }
    strong = {variant.name for variant in case if variant.recipe.typing is not Typing.WEAK}
    pairs = [(variant.name, variant.counterpart) for variant in case if variant.role is Role.TWIN]
    return any(
        (one in alike and other in strong) or (other in alike and one in strong) for one, other in pairs
    )


def test_weak_variants_have_a_twin() -> None:
    """A variant of builder flags has a twin with its precision in the graph, for versions without flags."""
    weak = [(case, variant) for case, variant in IN_CASES if variant.recipe.typing is Typing.WEAK]
    assert [f"{case.name}.{variant.name}" for case, variant in weak if not has_twin(case, variant)] == []


@every_variant
def test_typing_and_recipe_agree(variant: Variant) -> None:
    """A calibrator wants weak typing, the INT8 flag and no Q/DQ but by intent; strong typing takes no flags.

    A flag permits the type that a graph quantises its data to.
    """
    recipe = variant.recipe
    quantised = any(node.op_type == "QuantizeLinear" for node in built(variant).graph.node)
    if recipe.calibrator is not None:
        assert recipe.typing is Typing.WEAK
        assert "INT8" in recipe.flags
        assert quantised is (IDLE in variant.tags), (
            "the builder ignores a calibrator where the graph has Q/DQ"
        )
    if recipe.typing is Typing.STRONG:
        assert not recipe.flags
    if recipe.typing is Typing.GRAPH and quantised:
        assert {"INT8", "FP8"} & set(recipe.flags)


def conflicts(expectations: Iterable[Expectation]) -> list[str]:
    """Return a line for each target and GPU for which two expectations claim different classes."""
    # A measurement may contradict a report: the verdict then takes the measurement.
    claims = [claim for claim in expectations if claim.basis is not Basis.MEASURED and claim.stands]
    named = {target for claim in claims for target in claim.targets} | {""}
    # "" is a build without a GPU, of which no claim about a GPU says anything.
    gpus = sorted({claim.compute_capability or "" for claim in claims} | {""})
    places = (
        (engine, version, platform, target, gpu)
        for engine, versions in VERSIONS.items()
        for version, platform, target, gpu in itertools.product(versions, PLATFORMS, sorted(named), gpus)
    )
    found = []
    for engine, version, platform, target, gpu in places:
        covering = {
            claim.outcome
            for claim in claims
            if claim.covers(
                target=target, engine=engine, version=version, platform=platform, compute_capability=gpu
            )
        }
        if len(covering) > 1:
            where = f"{engine} {version} on {platform} {target} {gpu}".rstrip()
            found.append(f"{where}: {', '.join(sorted(covering))}")
    return found


@every_variant
def test_expectations_agree(variant: Variant) -> None:
    """No target is claimed to end in two classes."""
    assert conflicts(variant.expectations) == []


@every_variant
def test_expectations_are_about_something(variant: Variant) -> None:
    """Each claim covers a version that exists, or names none, and has a titled source or a measurement."""
    for claim in variant.expectations:
        assert claim.versions != "" or claim.targets
        assert claim.platform in (None, *PLATFORMS)
        if claim.source is not None:
            assert claim.source.url.startswith("https://")
            assert claim.source.title
        else:
            assert claim.note, "a measured claim says in its note what was measured"
        assert claim.versions is None or any(
            claim.covers(target=target, engine=claim.engine, version=version, platform=platform)
            for version in VERSIONS[claim.engine]
            for platform in PLATFORMS
            for target in (claim.targets or ("",))
        ), claim
        if claim.outcome is Class.OK:
            assert claim.signature is None


@every_variant
def test_a_claim_that_something_works_says_how_far(variant: Variant) -> None:
    """Who says "it builds" is not held to numbers or INT8: each claim of success names its stage, no failure does."""
    for claim in variant.expectations:
        if claim.basis is not Basis.MEASURED:
            assert (claim.level is not None) is (claim.outcome is Class.OK), claim


@every_variant
def test_removed_interfaces_are_expected(variant: Variant) -> None:
    """A weakly typed recipe is claimed to find its interface removed in TensorRT 11."""
    if variant.recipe.typing is not Typing.WEAK:
        return
    for version in ("11.0.0.114", "11.2.1.2"):
        outcomes = {
            claim.outcome
            for claim in variant.expectations
            if claim.covers(target="", engine=Engine.TENSORRT, version=version, platform="linux/amd64")
        }
        assert outcomes == {Class.API_REMOVED}


@every_variant
def test_title_is_one_line(variant: Variant) -> None:
    """A title is one plain line that fits a table row, and is read without the row above: the page folds cases."""
    assert variant.title == variant.title.strip()
    assert 10 <= len(variant.title) <= 110
    assert "\n" not in variant.title
    assert not variant.title.endswith(".")
    assert not variant.title.startswith("The same")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_has_a_reproducer_and_sources(case: Case) -> None:
    """A case shows the problem, says what it is and where it was met; its variants' titles differ."""
    assert any(variant.role is Role.REPRODUCER for variant in case)
    assert case.summary
    assert case.links
    assert all(link.title for link in case.links)
    titles = [variant.title for variant in case]
    assert len(titles) == len(set(titles))
