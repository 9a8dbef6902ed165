"""`check`: a model of one's own on targets, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from harness.api.checked import Checked
from harness.errors import HandledError
from harness.matrix import load_matrix
from harness.models.further import Asking, Questions, latest
from harness.models.own import (
    Given,
    OwnPrepared,
    Shapes,
    Wanted,
    built_with,
    fitted,
    load_own,
    own_case,
    read_libraries,
)
from harness.models.own.model import own_model
from harness.models.static import patterns, static_answers
from harness.models.trying import BuiltOrRun, How, Tries, run_models
from harness.plan import all_cells
from harness.shipped import looked_up
from harness.suggest import did_you_mean
from harness.words import Typing

if TYPE_CHECKING:
    from harness.models.own import OwnModel
    from harness.run.numbers import Array
    from harness.run.provision import Via

#: What an array-like may be.
Arrays = Mapping[str, "Array"]


def check(  # noqa: PLR0913  (each by its name, with a default)
    model: str | Path | onnx.ModelProto,
    *,
    targets: str | Iterable[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Arrays | None = None,
    expected: Arrays | None = None,
    calibration: Arrays | None = None,
    plugins: Iterable[str | Path] = (),
    max_rel: float | None = None,
    cosine: float | None = None,
    want: str = "auto",
    typing: str = "graph",
    flags: str | Iterable[str] = (),
    blockers: bool = True,
    ladder: bool = False,
    leave_float: str | Iterable[str] = "",
    workarounds: bool = False,
    matrix: str | Path | None = None,
    via: Via = "auto",
    jobs: int | None = None,
) -> Checked:
    """Build a model on each target, run it where that can be, and return what became of it.

    `matrix` is that file, else matrix.yaml here, else the one that comes with the harness. `targets` are names of it,
    all where none is given. `shapes` are those of dynamic inputs, made up where none is given. `inputs` are
    arrays for all network inputs, made up where none is given; `expected` are outputs to hold the engine to, by default
    those of the ONNX reference evaluator. `max_rel` and `cosine` are how far an output may be off, by default what its
    precision allows. `calibration` are batches of each network input for an INT8 calibrator, along the first axis, and
    `plugins` compiled libraries. `want` is "auto" for the precision that the graph asks of each node, "none", or a
    pattern of node names. `blockers`, `ladder`, `leave_float` ("auto" or nodes) and `workarounds` are what is tried
    beyond the model as it is, as the command's options of these names do. Raises HandledError for a file that is no
    model, for a name that is none, and for data that do not fit.
    """
    how, chosen = How(via, jobs), load_matrix(looked_up(matrix, "matrix.yaml")).only(targets)
    wanted = _wanted(typing, (flags,) if isinstance(flags, str) else flags, want, shapes or {})
    wanted = replace(wanted, max_rel=max_rel, cosine=cosine)
    own = _own(model, wanted)
    floats = leave_float if isinstance(leave_float, str) else ",".join(leave_float)
    questions = Questions(blockers, ladder, floats, workarounds)
    questions.named(own)
    libraries = read_libraries(map(Path, plugins))
    arrays = _arrays(inputs), _arrays(expected), _arrays(calibration)
    given = fitted(own, Given(*arrays, libraries, own.weights))
    own = built_with(own, given)
    judged = run_models(all_cells(chosen, (own_case([own]),)), OwnPrepared({own.variant.name: given}), how)
    with Tries(via=via, prepared=BuiltOrRun(given)) as tries:
        asking = Asking(own, judged, questions, tries, wanted.flags, given)
        found = latest(asking.answers())
    known = patterns(looked_up(None, "cases"), load_matrix(looked_up(matrix, "matrix.yaml")))[0]
    answers = {target: each for (_, target), each in static_answers([own], judged, known).items()}
    return Checked(own.label, tuple(judged), own.assumed, found, answers)


def _wanted(typing: str, flags: Iterable[str], want: str, shapes: Mapping[str, Sequence[int]]) -> Wanted:
    if typing not in tuple(Typing):
        raise HandledError(f"typing {typing!r} is none; {did_you_mean(typing, list(map(str, Typing)))}")
    usual = {name: tuple(each) for name, each in shapes.items()}
    return Wanted(Typing(typing), tuple(flags), want, Shapes(optimum=usual))


def _arrays(given: Arrays | None) -> Arrays:
    return {name: np.asarray(each) for name, each in (given or {}).items()}


def _own(model: str | Path | onnx.ModelProto, wanted: Wanted) -> OwnModel:
    if not isinstance(model, onnx.ModelProto):
        return load_own(Path(model), wanted)
    if not model.graph.node:
        raise HandledError("the model has no node in its graph; give another")
    return own_model(model, model.graph.name or "model", wanted, name="model")
