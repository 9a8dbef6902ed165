"""What users ask: `questions.yaml` beside the case modules names the variants whose results answer each question.

    schema: 1
    questions:
      build-without-gpu:
        asks: Can I build quantised graphs on a machine without a GPU?
        engine: tensorrt_rtx
        links: ["https://github.com/microsoft/onnxruntime/issues/29757"]
        variants: ["mish[qdq]", "depthwise_qdq[*]"]

No answer stands in it: an answer is made of results, and changes with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.document import Document, Form, Place, Problem, checked
from harness.suggest import did_you_mean
from harness.words import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harness.case.model import Case

FILE = "questions.yaml"
FORM = Form(Path(__file__).with_name("questions.schema.json"))
_ALL = "[*]"


@dataclass(frozen=True)
class Question:
    """A question, the engine that it is about, and the variants that answer it, by case and name.

    `sizes` says that the answer is the engine's size and the time to build it, not whether it builds.
    """

    id: str
    asks: str
    engine: Engine
    variants: tuple[tuple[str, str], ...]
    links: tuple[str, ...] = ()
    note: str = ""
    sizes: bool = False


def load_questions(folder: Path, cases: Iterable[Case]) -> tuple[Question, ...]:
    """Return the questions of a folder of cases in the file's order, none where there is no such file.

    Raises HandledError with the line that is wrong, also where it names a variant that is none.
    """
    path = folder / FILE
    if not path.exists():
        return ()
    known = {case.name: [variant.name for variant in case] for case in cases}
    data = checked(path, FORM, lambda document: _problems(document, known)).data
    return tuple(
        Question(
            id=name,
            asks=entry["asks"],
            engine=Engine(entry["engine"]),
            variants=tuple(dict.fromkeys(pair for row in entry["variants"] for pair in _pairs(row, known))),
            links=tuple(entry.get("links", ())),
            note=entry.get("note", ""),
            sizes=entry.get("sizes", False),
        )
        for name, entry in data["questions"].items()
    )


def _pairs(row: str, known: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    case, _, rest = row.partition("[")
    return [(case, name) for name in known.get(case, ()) if rest in ("*]", f"{name}]")]


def _problems(document: Document, known: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    rows = [f"{case}[{name}]" for case, names in known.items() for name in names]
    every = [*rows, *(case + _ALL for case in known)]
    for name, entry in document.data["questions"].items():
        for number, row in enumerate(entry["variants"]):
            if not _pairs(row, known):
                place: Place = ("questions", name, "variants", number)
                yield Problem(
                    document.line(place), place, f"{row!r} is no variant; {did_you_mean(row, every)}"
                )
