"""`ci-matrix`: the jobs of a nightly workflow, as JSON for GitHub's `fromJson`."""

from __future__ import annotations

import argparse
import json
import re

from harness.cli.ci_jobs import jobs
from harness.cli.common import EXIT_OK, add_selection, load_project, selected
from harness.errors import HandledError

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the selection and what the runners have."""
    add_selection(command)
    command.add_argument(
        "--gpu",
        dest="gpus",
        action="append",
        default=[],
        metavar="CAPABILITY",
        help="there are self-hosted runners with the label sm-CAPABILITY, such as 9.0 (repeatable)",
    )
    command.add_argument(
        "--jetson",
        dest="jetsons",
        action="append",
        default=[],
        metavar="RELEASE",
        help="there are self-hosted boards with the label l4t-RELEASE, such as 36.4 (repeatable)",
    )


def ci_matrix(options: argparse.Namespace) -> int:
    """Print one line of JSON: {"include": [...]}, a job each."""
    for option, values in (("--gpu", options.gpus), ("--jetson", options.jetsons)):
        for value in values:
            if not _VERSION.fullmatch(value):
                raise HandledError(f"{option} {value!r}: give two numbers and a point between, such as 9.0")
    targets = {cell.target.name: cell.target for cell in selected(load_project(options), options)}
    made = jobs(targets.values(), gpus=options.gpus, jetsons=options.jetsons)
    if not made:
        raise HandledError(
            "no runner for any of the selected targets; give --gpu or --jetson for what there is"
        )
    print(json.dumps({"include": [job.to_json() for job in made]}))
    return EXIT_OK
