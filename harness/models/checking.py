"""A check of models on targets, told as events: the command prints them, the Python interface collects the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx

from harness.case import Case
from harness.compare.kinds import Kind, Pair
from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.known.cell import known_of
from harness.known.listed import Static
from harness.known.model import Known
from harness.matrix import Matrix, load_matrix
from harness.models.check import Trouble, ran, troubles
from harness.models.further import Asking, Further, Questions, latest
from harness.models.own.data import Given, OwnPrepared, built_with, fitted, read_libraries
from harness.models.own.model import OwnModel, Wanted, load_own, of_made_up_sizes, own_case, own_model
from harness.models.own.shapes import Shapes, parse_shapes
from harness.models.static import patterns, static_answers
from harness.models.trying import BuiltOrRun, How, Tries, run_models
from harness.plan import all_cells
from harness.run.local import Sink
from harness.run.numbers.given import read_npz
from harness.run.numbers.wire import Array
from harness.run.provision.model import Via
from harness.shipped import looked_up
from harness.text import did_you_mean
from harness.words import Basis, Typing

Model = str | Path | onnx.ModelProto
#: Arrays by name, or the .npz that holds them.
Arrays = Mapping[str, "Array"] | str | Path
#: Sizes by input, or as --shapes takes them.
Sizes = Mapping[str, Sequence[int]] | str


@dataclass(frozen=True)
class Answer:
    """One model on one target: its judged record, the static answer, and what was tried beyond it.

    `made_up` are sizes, as --shapes takes them, that may be why it fails; "" where the user gave all.
    """

    judged: Judged
    static: Static = field(default_factory=Static)
    made_up: str = ""
    further: Further | None = None

    @property
    def model(self) -> str:
        """Return the user's name for the model."""
        return self.judged.cell.variant.title

    @property
    def target(self) -> str:
        """Return the target's name."""
        return self.judged.cell.target.name

    @property
    def ran(self) -> bool:
        """Tell whether the target answered: it can run here, and no machinery failed."""
        return ran(self.judged)

    @cached_property
    def known(self) -> Known:
        """Return what is known of the model there, without a run too."""
        return known_of([self.judged], static=self.static.gravest)

    @property
    def blocked(self) -> bool:
        """Tell whether NVIDIA's tables alone say that the model is not built."""
        return self.known.basis is Basis.LISTED and self.known.stands is not None

    @property
    def troubles(self) -> frozenset[Trouble]:
        """Return the troubles of the model there; none where nothing is known."""
        return frozenset({Trouble.BUILD}) if self.blocked else troubles(self.judged)


@dataclass(frozen=True)
class Step:
    """A model from one target to another."""

    before: Answer
    after: Answer

    @cached_property
    def pair(self) -> Pair:
        """Return both sides as they are compared everywhere."""
        return Pair(tuple(self.after.judged.wished.items()), self.before.known, self.after.known)

    @property
    def unknown(self) -> Answer | None:
        """Return the side that did not run, or that fails with sizes that were made up; None where both are known."""
        return next((each for each in (self.before, self.after) if not each.ran or each.made_up), None)

    @property
    def worse(self) -> frozenset[Trouble]:
        """Return the troubles that are new on the later side. What did not build before cannot get worse."""
        kinds, after = {*self.pair.kinds()}, self.after
        if Trouble.BUILD in self.before.troubles or not (after.blocked or (self.before.ran and after.ran)):
            return frozenset()
        fails = kinds & {Kind.BROKEN, Kind.OTHERWISE} or self.pair.unheralded
        found = after.troubles - self.before.troubles - {Trouble.INT8_LOSS} if fails else frozenset()
        loses = after.judged.demanded and (Kind.PRECISION_LOST in kinds or self.pair.left)
        return found | {Trouble.INT8_LOSS} if loses else found


@dataclass(frozen=True)
class Reading:
    """A model is read."""

    model: Model


@dataclass(frozen=True)
class Refused:
    """One of several models cannot be read."""

    error: HandledError


@dataclass(frozen=True)
class Begun:
    """The models are read, as the variants of one case, and run on these targets; `cells` count both."""

    models: tuple[OwnModel, ...]
    matrix: Matrix
    case: Case
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """A model's record on a target."""

    judged: Judged


@dataclass(frozen=True)
class Concluded:
    """All that is known of the models as they are; `unread` says why no patterns were looked for, if any were not."""

    answers: tuple[Answer, ...]
    steps: tuple[Step, ...]
    unread: str


@dataclass(frozen=True)
class Trying:
    """A try of what is made of a model."""

    target: str
    count: int


@dataclass(frozen=True)
class Behind:
    """What lies further behind: the answers to one question about a model, by its name in results.json."""

    model: OwnModel
    question: str
    found: tuple[Further, ...]


@dataclass(frozen=True)
class Asked:
    """All questions about a model are answered."""

    asking: Asking


Event = Reading | Refused | Begun | Ended | Concluded | Trying | Behind | Asked


@dataclass(frozen=True)
class Check:
    """A check; its fields are the options of the command by these names, and the arguments of `harness.check`.

    `matrix` is that file, else matrix.yaml here, else the one that comes with the harness; `cases` alike. `targets` are
    names of it, all where none is given; `before` and `after` name the ends of a step. `shapes` are those of dynamic
    inputs, made up where none is given. `inputs` are arrays for all network inputs, made up where none is given;
    `expected` are outputs to hold the engine to, by default those of the ONNX reference evaluator; `calibration` are
    batches of each input for an INT8 calibrator, along the first axis; all three may be files. `max_rel` and `cosine`
    are how far an output may be off, by default by its precision. `plugins` are compiled libraries. `want` is "auto"
    for the precision that the graph asks of each node, "none", or a pattern of node names. `blockers`, `leave_float`
    ("auto" or nodes) and `workarounds` are tries beyond the models as they are. Raises HandledError for a file that is
    no model, for a name that is none, and for data that do not fit.
    """

    models: Model | Sequence[Model]
    targets: str | Iterable[str] = ()
    before: str = ""
    after: str = ""
    shapes: Sizes = ""
    min_shapes: Sizes = ""
    opt_shapes: Sizes = ""
    max_shapes: Sizes = ""
    inputs: Arrays | None = None
    expected: Arrays | None = None
    calibration: Arrays | None = None
    plugins: Iterable[str | Path] = ()
    max_rel: float | None = None
    cosine: float | None = None
    want: str = "auto"
    typing: str = "graph"
    flags: str | Iterable[str] = ()
    blockers: bool = True
    leave_float: str | Iterable[str] = ""
    workarounds: bool = False
    matrix: str | Path | Matrix | None = None
    cases: Path | Sequence[Case] | None = None
    via: Via = "auto"
    jobs: int | None = None
    pull: bool = False

    def run(self, tell: Callable[[Event], None] = lambda _: None, sink: Sink | None = None) -> list[Answer]:
        """Run the check and return an answer for each model and target; events are told, records go to `sink`."""
        how, whole = How(self.via, self.jobs, self.pull), self._matrix()
        matrix = self._chosen(whole)
        given: dict[str, Given] = {}
        models = [self._given(model, given) for model in self._models(tell)]
        case = own_case(models)
        cells = all_cells(matrix, (case,))
        tell(Begun(tuple(models), matrix, case, tuple(cell.target.name for cell in cells)))
        judged = run_models(cells, OwnPrepared(given), how, sink=sink, tell=lambda one: tell(Ended(one)))
        known, unread = patterns(looked_up(None, "cases") if self.cases is None else self.cases, whole)
        static, doubted = static_answers(models, judged, known), dict(_doubted(models, judged))
        answers = [Answer(each, static[each.cell.id], doubted.get(each.cell.id, "")) for each in judged]
        tell(Concluded(tuple(answers), tuple(self._steps(models, answers)), unread))
        further = {each.before.cell.id: each for each in self._further(models, judged, given, tell)}
        return [replace(each, further=further.get(each.judged.cell.id)) for each in answers]

    @property
    def questions(self) -> Questions:
        """Return the questions to ask beyond the models as they are."""
        floats = self.leave_float if isinstance(self.leave_float, str) else ",".join(self.leave_float)
        return Questions(self.blockers, floats, self.workarounds)

    @property
    def given_flags(self) -> tuple[str, ...]:
        """Return the builder flags that the user gives."""
        return (self.flags,) if isinstance(self.flags, str) else tuple(self.flags)

    def _matrix(self) -> Matrix:
        given = self.matrix
        return given if isinstance(given, Matrix) else load_matrix(looked_up(given, "matrix.yaml"))

    def _chosen(self, matrix: Matrix) -> Matrix:
        """Return the matrix of the targets that are asked for; all where none is."""
        if bool(self.before) != bool(self.after):
            given, other = ("--from", "--to") if self.before else ("--to", "--from")
            raise HandledError(f"{given} names one side; name the other with {other}")
        if self.before and self.before == self.after:
            raise HandledError(f"--from and --to are both {self.before}; name two targets")
        targets = (self.targets,) if isinstance(self.targets, str) else self.targets
        return matrix.only([*filter(None, (self.before, self.after)), *targets])

    def _models(self, tell: Callable[[Event], None]) -> list[OwnModel]:
        """Return the models; of several, one that cannot be read costs its own answers alone."""
        named = (self.models,) if isinstance(self.models, str | Path | onnx.ModelProto) else self.models
        wanted, found, refused = self._wanted(), [], []
        for model in named:
            tell(Reading(model))
            try:
                found.append(_read(model, wanted))
            except HandledError as error:
                refused.append(error)
        if not found:
            raise HandledError("; ".join(map(str, refused)))
        for each in refused:
            tell(Refused(each))
        for own in found:
            self.questions.named(own)
        if len(named) > 1 and any((self.inputs, self.expected, self.calibration)):
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
        return Wanted(Typing(self.typing), self.given_flags, self.want, shapes, self.max_rel, self.cosine)

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

    def _steps(self, models: Iterable[OwnModel], answers: Iterable[Answer]) -> Iterator[Step]:
        """Yield the step of each model, where two targets are named."""
        found = {(each.judged.cell.variant.name, each.target): each for each in answers}
        for model in models if self.before else ():
            yield Step(*(found[model.variant.name, target] for target in (self.before, self.after)))

    def _further(
        self,
        models: Iterable[OwnModel],
        judged: Sequence[Judged],
        given: Mapping[str, Given],
        tell: Callable[[Event], None],
    ) -> Iterator[Further]:
        """Yield the last answers beyond the models as they are, for each model and target that was asked anything."""
        prepared = BuiltOrRun()
        with Tries(via=self.via, prepared=prepared, told=lambda *at: tell(Trying(*at))) as tries:
            for model in models:
                mine = [each for each in judged if each.cell.variant.name == model.variant.name and ran(each)]
                if not mine:
                    continue
                prepared.given = given[model.variant.name]
                asking = Asking(model, mine, self.questions, tries, self.given_flags, prepared.given)
                answers = []
                for question, found in asking.answers():
                    answers.append((question, found))
                    tell(Behind(model, question, found))
                tell(Asked(asking))
                yield from latest(answers)


def _read(model: Model, wanted: Wanted) -> OwnModel:
    if not isinstance(model, onnx.ModelProto):
        return load_own(Path(model), wanted)
    if not model.graph.node:
        raise HandledError("the model has no node in its graph; give another")
    return own_model(model, model.graph.name or "model", wanted, name="model")


def _sizes(given: Sizes, option: str) -> dict[str, tuple[int, ...]]:
    if isinstance(given, str):
        return parse_shapes(given, f"--{option}")
    return {name: tuple(each) for name, each in given.items()}


def _arrays(given: Arrays | None, option: str) -> dict[str, Array]:
    if isinstance(given, str | Path):
        return read_npz(Path(given), f"--{option}")
    return {name: np.asarray(each) for name, each in (given or {}).items()}


def _doubted(models: Iterable[OwnModel], judged: Sequence[Judged]) -> Iterator[tuple[str, str]]:
    """Yield the cell of each failure that may come of made-up sizes, with these."""
    for own in models:
        mine = [each for each in judged if each.cell.variant.name == own.variant.name]
        for failed in of_made_up_sizes(own, mine):
            yield failed.cell.id, own.made_up
