"""A check of models on targets, told as events: the command prints them, the Python interface collects the answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

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


def option(text: str, form: str = "", *, default: object = None, **words: object) -> Any:  # noqa: ANN401  (as `field`)
    """Return a field that is an option: its help, and its form as `FORMS` of harness/cli/options.py has it.

    The option has the field's name, or is `name`; `short` is another. All other words are argparse's.
    """
    return field(default=default, metadata={"help": text, "form": form, **words})


_SIZES, _TRTEXEC = "of dynamic inputs: x:1x3x640x640,mask:1x640", "as trtexec has it"
_BY_PRECISION = "(default: by the coarsest precision that anything ran in)"


@dataclass(frozen=True, kw_only=True)
class Building:
    """How a model is built, and how far its outputs may be off: options of every verb that builds a user's model."""

    shapes: str = option(_SIZES, default="", metavar="SHAPES")
    typing: str = option("(default: graph)", default="graph", choices=tuple(map(str, Typing)))
    flags: str | Sequence[str] = option(
        "a builder flag, as FP16 (repeatable)", "several", default=(), name="--flag", metavar="NAME"
    )
    max_rel: float | None = option(
        f"the most an output may be off, as a fraction of its magnitude {_BY_PRECISION}", "number"
    )
    cosine: float | None = option(
        f"the least cosine between an output and the expected one {_BY_PRECISION}", "number"
    )

    @property
    def wanted(self) -> Wanted:
        """Return the wishes for a model; raises HandledError for an impossible one."""
        if self.typing not in tuple(Typing):
            known = did_you_mean(self.typing, list(map(str, Typing)))
            raise HandledError(f"typing {self.typing!r} is none; {known}")
        shapes = Shapes(optimum=parse_shapes(self.shapes, "--shapes"))
        flags = _several(self.flags)
        return Wanted(Typing(self.typing), flags, shapes=shapes, max_rel=self.max_rel, cosine=self.cosine)


@dataclass(frozen=True)
class Check(Building):
    """A check; its fields are the options of the command by these names, and the arguments of `harness.check`.

    `matrix` is that file, else matrix.yaml here, else the one that comes with the harness; `cases` alike. `targets` are
    names of it, by default all; `before` and `after` name the ends of a step. `shapes` are those of dynamic
    inputs, as --shapes takes them, and `inputs` arrays for all network inputs; both are made up if they are not given;
    `expected` are outputs to hold the engine to, by default those of the ONNX reference evaluator; `calibration` are
    batches of each input for an INT8 calibrator, along the first axis; all three may be files. `max_rel` and `cosine`
    are how far an output may be off, by default by its precision. `plugins` are compiled libraries. `want` is "auto"
    for the precision that the graph asks of each node, or "none". `blockers`, `leave_float`
    (nodes) and `workarounds` are tries beyond the models as they are. A build that is not done after
    `seconds` is left out; without them it takes as long as matrix.yaml allows. `models` may be folders.
    Raises HandledError for a file that is no model, for an unknown name, and for data that do not fit.
    """

    models: Model | Sequence[Model]
    targets: str | Sequence[str] = option(
        "only this target (repeatable)", "several", default=(), name="--target", metavar="NAME"
    )
    before: str = option("the target that is used today", default="", name="--from", metavar="A")
    after: str = option("the target that is to be used", default="", name="--to", metavar="B")
    min_shapes: str = option(_TRTEXEC, default="", name="--minShapes", metavar="SHAPES")
    opt_shapes: str = option(_TRTEXEC, default="", name="--optShapes", metavar="SHAPES")
    max_shapes: str = option(_TRTEXEC, default="", name="--maxShapes", metavar="SHAPES")
    inputs: Arrays | None = option("an .npz with an array for each network input", "file")
    expected: Arrays | None = option(
        "an .npz with what outputs are to be (default: ONNX's reference)", "file"
    )
    calibration: Arrays | None = option(
        "an .npz with batches of each network input for an INT8 calibrator, along the first axis", "file"
    )
    plugins: Sequence[str | Path] = option(
        "a compiled library of plugins, loaded before the model is parsed (repeatable)",
        "several",
        default=(),
        name="--plugin",
        metavar="LIBRARY",
        type=Path,
    )
    want: Literal["auto", "none"] = option(
        "none: hold no node to the precision that the graph asks of it",
        default="auto",
        choices=("auto", "none"),
    )
    blockers: bool = option(
        "of a model that does not build tell the first failure alone, not what else there is",
        "off",
        default=True,
        name="--no-blockers",
    )
    leave_float: str | Sequence[str] = option("try these nodes without Q/DQ", default="", metavar="NODE,NODE")
    workarounds: bool = option(
        "try every known way round on the model, and tell which help and what they cost",
        "on",
        default=False,
        name="--try-workarounds",
    )
    seconds: float | None = option(
        "seconds for one build; what is not done then is left out, which is exit 3 (default: as matrix.yaml says)",
        "count",
    )
    jobs: int | None = option("targets at the same time (default: one a processor)", "count", short="-j")
    pull: bool = option("pull large images too", "on", default=False)
    # Every verb that runs engines has these, from harness/cli/options.py.
    matrix: str | Path | Matrix | None = None
    cases: Path | Sequence[Case] | None = None
    via: Via = "auto"

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
        names = self.leave_float.split(",") if isinstance(self.leave_float, str) else self.leave_float
        return Questions(self.blockers, tuple(filter(None, map(str.strip, names))), self.workarounds)

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
        wanted, found, refused = self.wanted, [], []
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
            self.questions.fit(own)
        if len(found) + len(refused) > 1 and any((self.inputs, self.expected, self.calibration)):
            raise HandledError(
                "--inputs, --expected and --calibration are of one model, and several are named; check them one by one"
            )
        return found

    @property
    def wanted(self) -> Wanted:
        """Return the wishes for all models."""
        whole, least = super().wanted, parse_shapes(self.min_shapes, "--minShapes")
        usual = parse_shapes(self.opt_shapes, "--optShapes") or whole.shapes.optimum
        shapes = Shapes(least, usual, parse_shapes(self.max_shapes, "--maxShapes"))
        if self.want not in ("auto", "none"):
            raise HandledError(f"want={self.want!r}: give auto or none")
        arrays = {name: each.shape for name, each in _arrays(self.inputs, "inputs").items()}
        return replace(whole, nodes=self.want, shapes=shapes, arrays=arrays)

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
                decides = [each for each in answers if each.ran or each.target in begun.decides]
                mine = [each for each in decides if each.model == model.label]
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


def _arrays(given: Arrays | None, option: str) -> dict[str, Array]:
    if isinstance(given, str | Path):
        return read_npz(Path(given), f"--{option}")
    return {name: np.asarray(each) for name, each in (given or {}).items()}
