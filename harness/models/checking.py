"""A check of models on targets, told as events: the command prints them, the Python interface collects the answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from harness.case import Case
from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.matrix import Matrix, load_matrix
from harness.models.answers import Answer, ModelStep, deciding
from harness.models.blockers import MOST_SECONDS as MOST_BLOCKERS_SECONDS
from harness.models.deciding import Patterns
from harness.models.further import Asking, Questions
from harness.models.own.data import Given, OwnPrepared, built_with, fitted, read_libraries
from harness.models.own.model import OwnModel, Wanted, load_own, of_made_up_sizes, own_case, own_model, word
from harness.models.own.shapes import Shapes, parse_shapes
from harness.models.static import patterns, static_answers
from harness.models.trying import BuiltOrRun, Tries, run_models
from harness.plan import Cell, all_cells
from harness.run.gpus import WAIT
from harness.run.local import How, Sink
from harness.run.numbers.given import read_npz
from harness.run.numbers.wire import Array
from harness.run.provision.model import Via
from harness.run.provision.requirements import refuse_unconfined
from harness.shipped import looked_up
from harness.text import did_you_mean
from harness.words import Class, Typing

Model = str | Path | onnx.ModelProto
#: Arrays by name, or the .npz that holds them.
Arrays = Mapping[str, "Array"] | str | Path
#: Sizes by input, or as --shapes takes them.
Sizes = Mapping[str, Sequence[int]] | str | None


@dataclass(frozen=True)
class Now:
    """The work that begins, in words."""

    text: str


@dataclass(frozen=True)
class Unread:
    """One of several models cannot be read."""

    error: HandledError


@dataclass(frozen=True)
class Begun:
    """The models are read, and run on these targets as the variants of one case; `decides` are those that decide."""

    models: tuple[OwnModel, ...]
    matrix: Matrix
    case: Case
    decides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """A model's record on a target."""

    judged: Judged


@dataclass(frozen=True)
class Concluded:
    """All that is known of the models as they are; `unread` says why no patterns were looked for, if any were not."""

    answers: tuple[Answer, ...]
    steps: tuple[ModelStep, ...] = ()
    unread: str = ""


@dataclass(frozen=True)
class Behind:
    """The answers to a further question about a model, by its name in results.json."""

    model: OwnModel
    question: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class AllAnswered:
    """All questions about a model are answered."""

    asking: Asking


Event = Now | Unread | Begun | Ended | Concluded | Behind | AllAnswered
Tell = Callable[[Event], None]


@dataclass(frozen=True)
class Check:
    """A check; its fields are the options of the command by these names, and the arguments of `harness.check`.

    `matrix` is that file, else matrix.yaml here, else the one that comes with the harness; `cases` alike. `targets` are
    names of it, by default all; `before` and `after` name the ends of a step. `shapes` are those of dynamic
    inputs and `inputs` arrays for all network inputs; both are made up if they are not given;
    `expected` are outputs to hold the engine to, by default those of the ONNX reference evaluator; `calibration` are
    batches of each input for an INT8 calibrator, along the first axis; all three may be files. `max_rel` and `cosine`
    are how far an output may be off, by default by its precision. `plugins` are compiled libraries. `want` is "auto"
    for the precision that the graph asks of each node, "none", or a pattern of node names. `blockers`, `leave_float`
    ("auto" or nodes) and `workarounds` are tries beyond the models as they are. A build that is not done after
    `seconds` is left out; without them it takes as long as matrix.yaml allows. `models` may be folders.
    Raises HandledError for a file that is no model, for an unknown name, and for data that do not fit.
    """

    models: Model | Sequence[Model]
    targets: str | Sequence[str] = ()
    before: str = ""
    after: str = ""
    shapes: Sizes = ""
    min_shapes: Sizes = ""
    opt_shapes: Sizes = ""
    max_shapes: Sizes = ""
    inputs: Arrays | None = None
    expected: Arrays | None = None
    calibration: Arrays | None = None
    plugins: Sequence[str | Path] = ()
    max_rel: float | None = None
    cosine: float | None = None
    want: str = "auto"
    typing: str = "graph"
    flags: str | Sequence[str] = ()
    blockers: bool = True
    leave_float: str | Sequence[str] = ""
    workarounds: bool = False
    seconds: float | None = None
    matrix: str | Path | Matrix | None = None
    cases: Path | Sequence[Case] | None = None
    via: Via = "auto"
    jobs: int | None = None
    pull: bool = False

    def run(self, tell: Tell = lambda _: None, sink: Sink | None = None) -> list[Answer]:
        """Run the check and return an answer for each model and target; events are told, records go to `sink`."""
        how, given = How(self.via, self.jobs, self.pull, wait=self.seconds or WAIT), self.matrix
        whole = given if isinstance(given, Matrix) else load_matrix(looked_up(given, "matrix.yaml"))
        matrix = self._bounded(self._chosen(whole))
        refuse_unconfined(matrix, self.via)
        data: dict[str, Given] = {}
        models = [self._given(model, data) for model in self._models(tell)]
        case = own_case(models)
        begun = Begun(tuple(models), matrix, case, deciding(matrix, self._named))
        tell(begun)
        judged = self._run(all_cells(matrix, (case,)), OwnPrepared(data), how, tell, sink)
        known, unread = patterns(looked_up(None, "cases") if self.cases is None else self.cases)
        given_inputs = {name: each.inputs for name, each in data.items()}
        static, doubted = static_answers(models, judged, known, given_inputs), {}
        for own in models:
            mine = [each for each in judged if each.cell.variant.name == own.variant.name]
            doubted.update({each.cell.id: own.made_up for each in of_made_up_sizes(own, mine)})
        answers = [
            Answer(
                each, static[each.cell.id], doubted.get(each.cell.id, ""), left_out=self._is_left_out(each)
            )
            for each in judged
        ]
        tell(Concluded(tuple(answers), tuple(self._steps(models, answers)), unread))
        further = self._further(begun, answers, data, known, tell)
        return [further.get(each.judged.cell.id, each) for each in answers]

    @property
    def questions(self) -> Questions:
        """Return the questions to ask beyond the models as they are."""
        floats = self.leave_float if isinstance(self.leave_float, str) else ",".join(self.leave_float)
        return Questions(self.blockers, floats, self.workarounds)

    def _chosen(self, matrix: Matrix) -> Matrix:
        """Return the matrix of the targets that are asked for, by default all."""
        if bool(self.before) != bool(self.after):
            given, other = ("--from", "--to") if self.before else ("--to", "--from")
            raise HandledError(f"{given} names one side; name the other with {other}")
        if self.before and self.before == self.after:
            raise HandledError(f"--from and --to are both {self.before}; name two targets")
        return matrix.only(self._named)

    @property
    def _named(self) -> tuple[str, ...]:
        """Return the targets that the user names."""
        return *filter(None, (self.before, self.after)), *_several(self.targets)

    def _bounded(self, matrix: Matrix) -> Matrix:
        """Return the matrix whose targets take no longer for a build or a run than the user says."""
        seconds: object = self.seconds
        if seconds is None:
            return matrix
        if not (isinstance(seconds, int | float) and 0 < seconds < math.inf):
            raise HandledError(f"seconds={seconds!r}: give a number above 0")
        bounded = (replace(each, timeout_s=min(each.timeout_s, float(seconds))) for each in matrix)
        return replace(matrix, targets=tuple(bounded))

    def _is_left_out(self, judged: Judged) -> bool:
        """Tell whether a build or a run was not done within the time that the user gives."""
        limit = judged.cell.target.timeout_s
        return (
            judged.classification.cls is Class.TIMED_OUT
            and self.seconds is not None
            and limit == self.seconds
        )

    def _models(self, tell: Tell) -> list[OwnModel]:
        """Return the models; of several, one that cannot be read costs its own answers alone."""
        named = (self.models,) if isinstance(self.models, str | Path | onnx.ModelProto) else self.models
        if not named:
            raise HandledError("no model is given; name one")
        wanted, found, refused = self._wanted(), [], []
        for model, name in _in_folders(named):
            tell(Now(f"reading {model if isinstance(model, str | Path) else 'the model'}"))
            try:
                found.append(_read(model, wanted, name))
            except HandledError as error:
                refused.append(error)
        if not found:
            raise HandledError("; ".join(map(str, refused)))
        for each in refused:
            tell(Unread(each))
        for own in found:
            self.questions.named(own)
        if len(found) + len(refused) > 1 and any((self.inputs, self.expected, self.calibration)):
            raise HandledError(
                "--inputs, --expected and --calibration are of one model, and several are named; check them one by one"
            )
        return found

    def _wanted(self) -> Wanted:
        if self.typing not in tuple(Typing):
            known = did_you_mean(self.typing, list(map(str, Typing)))
            raise HandledError(f"typing {self.typing!r} is none; {known}")
        usual = _sizes(self.opt_shapes, "optShapes") or _sizes(self.shapes, "shapes")
        shapes = Shapes(_sizes(self.min_shapes, "minShapes"), usual, _sizes(self.max_shapes, "maxShapes"))
        arrays = {name: each.shape for name, each in _arrays(self.inputs, "inputs").items()}
        flags = _several(self.flags)
        return Wanted(Typing(self.typing), flags, self.want, shapes, self.max_rel, self.cosine, arrays)

    def _given(self, own: OwnModel, every: dict[str, Given]) -> OwnModel:
        """Return a model built with the user's data, which are put among those of every model by its name."""
        given = Given(
            _arrays(self.inputs, "inputs"),
            _arrays(self.expected, "expected"),
            _arrays(self.calibration, "calibration"),
            read_libraries(map(Path, self.plugins)),
            own.weights,
        )
        given = fitted(own, given)
        every[own.variant.name] = given
        return built_with(own, given)

    def _steps(self, models: Iterable[OwnModel], answers: Iterable[Answer]) -> Iterator[ModelStep]:
        """Yield the step of each model, if two targets are named."""
        found = {(each.judged.cell.variant.name, each.target): each for each in answers}
        for model in models if self.before else ():
            yield ModelStep(*(found[model.variant.name, target] for target in (self.before, self.after)))

    def _run(
        self, cells: Sequence[Cell], prepared: OwnPrepared, how: How, tell: Tell, sink: Sink | None
    ) -> list[Judged]:
        """Run every model on every target; each record is told as it comes, and which targets are to come."""
        left = [cell.target.name for cell in cells]

        def ended(judged: Judged | None) -> None:
            if judged:
                left.remove(judged.cell.target.name)
            names = ", ".join(dict.fromkeys(left)) or "nothing"
            tell(Now(f"{len(cells) - len(left)} of {len(cells)} done; {names} to come"))
            if judged:
                tell(Ended(judged))

        ended(None)
        return run_models(cells, prepared, how, sink=sink, tell=ended)

    def _further(
        self,
        begun: Begun,
        answers: Sequence[Answer],
        given: Mapping[str, Given],
        known: Patterns | None,
        tell: Tell,
    ) -> dict[str, Answer]:
        """Return by cell the answers of the targets that were asked anything beyond the models as they are."""
        asked: dict[str, Answer] = {}
        prepared = BuiltOrRun()

        def trying(target: str, count: int) -> None:
            tell(Now(f"trying what is made of the model: on {target}, try {count}"))

        with Tries(via=self.via, prepared=prepared, told=trying) as tries:
            for model in begun.models:
                its = [each for each in answers if each.model == model.label]
                mine = [each for each in its if each.ran or each.target in begun.decides]
                prepared.given = given[model.variant.name]
                flags, data = _several(self.flags), prepared.given
                most = MOST_BLOCKERS_SECONDS if self.seconds is None else self.seconds
                asking = Asking(model, mine, self.questions, tries, flags, data, most, known)
                for question, found in asking.answers() if mine else ():
                    tell(Behind(model, question, found))
                    asked |= {each.judged.cell.id: each for each in found}
                tell(AllAnswered(asking))
        return asked


def _in_folders(named: Iterable[Model]) -> Iterator[tuple[Model, str]]:
    """Yield each model with its name in results.json, "" for the usual; those of a folder by their place in it."""
    for model in named:
        if isinstance(model, onnx.ModelProto) or not Path(model).is_dir():
            yield model, ""
            continue
        inside = sorted(Path(model).rglob("*.onnx"))
        if not inside:
            raise HandledError(f"{model}: holds no .onnx file; give a folder that does")
        yield from ((each, word(str(each.relative_to(model).with_suffix("")))) for each in inside)


def _read(model: Model, wanted: Wanted, name: str) -> OwnModel:
    if not isinstance(model, onnx.ModelProto):
        return load_own(Path(model), wanted, name=name)
    if not model.graph.node:
        raise HandledError("the model has no node in its graph; give another")
    return own_model(model, model.graph.name or "model", wanted, name="model")


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _sizes(given: Sizes, option: str) -> dict[str, tuple[int, ...]]:
    if isinstance(given, str):
        return parse_shapes(given, f"--{option}")
    every: Mapping[str, object] = given or {}
    for name, each in every.items():
        if isinstance(each, str) or not isinstance(each, Iterable):
            raise HandledError(
                f"--{option} {name!r}: {each!r} is no shape; give its sizes, as in (1, 3, 640, 640)"
            )
    return {name: tuple(each) for name, each in (given or {}).items()}


def _arrays(given: Arrays | None, option: str) -> dict[str, Array]:
    if isinstance(given, str | Path):
        return read_npz(Path(given), f"--{option}")
    return {name: np.asarray(each) for name, each in (given or {}).items()}
