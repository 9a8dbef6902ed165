"""`new NAME --from MODEL`: a case module of an own model."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.common import EXIT_OK
from harness.cli.reduce import add_recipe, wanted
from harness.errors import HandledError
from harness.models.case_file import About, add_case, case_name, case_text, loaded
from harness.models.own import load_own

_TITLE = "What fails, in a sentence: to be written"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `new`."""
    command.description = (
        "Write a case module of a model into the folder of the cases. Weights of many values become made-up ones of "
        "the same shape; `reduce --case` makes the model small first, and holds the case to what it shows."
    )
    command.add_argument("name", metavar="NAME", help="of the case, and of its file")
    command.add_argument(
        "--from", dest="model", type=Path, required=True, metavar="MODEL", help="an .onnx file"
    )
    command.add_argument("--issue", default="", metavar="URL", help="where it is reported")
    add_recipe(command)


def new(options: argparse.Namespace) -> int:
    """Write the case and say what to do with it; returns the exit code."""
    path = options.cases / f"{options.name}.py"
    name = case_name(path)
    own = load_own(options.model, wanted(options), name="reported")
    if own.weights is not None:
        raise HandledError(
            f"{options.model}: has {own.weights} of weights, too many for a case; `trt-compat reduce` makes it small"
        )
    about = About(name, _TITLE, f"A model of {len(own.nodes)} nodes.", options.issue, own.variant.data)
    text = case_text(own.variant.build(), about, own.variant.recipe)
    loaded(text, name)
    add_case(path, text)
    print(f"{path}: {len(own.nodes)} nodes; give it a title, then: trt-compat run -k {name}")
    return EXIT_OK
