"""`init`: the first files of a repository of one's own; `ci-matrix`: the jobs of its nightly workflow, as JSON."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness import __version__
from harness.cli.options import EXIT_OK, add_selection
from harness.cli.project import load_project, selected
from harness.errors import HandledError
from harness.matrix import Target

_START = Path(__file__).with_name("start")
#: The files that are written, and their sources.
_FILES = {
    "matrix.yaml": "matrix.yaml",
    "cases/example.py": "example.py.txt",
    ".github/workflows/trt-compat.yml": "workflow.yml.txt",
    ".github/trt-compat-gate.sh": "gate.sh",
}
_PLUGIN = 'pytest_plugins = ["harness.pytest_plugin"]\n'
_IGNORED = (b"/reports/", b"__pycache__/")


def add_init(command: argparse.ArgumentParser) -> None:
    """Add the folder, and whether to overwrite."""
    command.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="(default: here)"
    )
    command.add_argument("--force", action="store_true", help="overwrite what is there of the same name")


def do_init(options: argparse.Namespace) -> int:
    """Write all files, or no file if one is there already; .gitignore gets only the lines that it lacks."""
    folder: Path = options.folder
    there = [name for name in _FILES if (folder / name).exists()]
    if there and not options.force:
        raise HandledError(f"{folder / there[0]}: is there already; --force overwrites {', '.join(there)}")
    try:
        pytest_too = _write(folder)
    except OSError as error:
        raise HandledError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    print(f"written: {', '.join([*_FILES, '.gitignore', *(['conftest.py'] if pytest_too else [])])}")
    if not pytest_too:
        print(f"for pytest, conftest.py needs the line {_PLUGIN.strip()}")
    cd = "" if folder == Path() else f"{shlex.join(['cd', str(folder)])}; "
    print(f"next: {cd}trt-compat doctor; trt-compat run, or pytest")
    return EXIT_OK


def _write(folder: Path) -> bool:
    """Write the files; tell whether pytest collects the matrix now."""
    for name, source in _FILES.items():
        text = (_START / source).read_text(encoding="utf-8")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("@VERSION@", __version__), encoding="utf-8")
    _ignore(folder / ".gitignore")
    return _load_plugin(folder / "conftest.py")


def _load_plugin(path: Path) -> bool:
    """Have pytest collect the matrix; return False for somebody's conftest.py, which is left as it is."""
    if not path.exists():
        path.write_text(f'"""Has pytest collect matrix.yaml."""\n\n{_PLUGIN}', encoding="utf-8")
    return _PLUGIN.strip() in path.read_text(encoding="utf-8", errors="replace")


def _ignore(path: Path) -> None:
    # As bytes: Git asks for no encoding.
    before = path.read_bytes() if path.exists() else b""
    missing = [line for line in _IGNORED if line not in before.splitlines()]
    if missing:
        joint = b"\n" if before and not before.endswith(b"\n") else b""
        path.write_bytes(before + joint + b"\n".join([*missing, b""]))


#: https://docs.github.com/en/actions/reference/limits: the jobs that one matrix may have.
MOST_JOBS = 256
#: GitHub's own runners, by architecture.
_HOSTED = {"x86_64": "ubuntu-24.04", "aarch64": "ubuntu-24.04-arm"}
_SELF_HOSTED = {"x86_64": "X64", "aarch64": "ARM64"}
#: Minutes for a job; GitHub ends a hosted one after 360 whatever is asked.
_MINUTES = 350
#: Minutes of them for setting up and for uploading the records.
_AROUND = 20


#: An entry of the workflow's matrix: one target on one kind of runner.
Job = dict[str, Any]


def jobs(
    targets: Iterable[Target], *, gpus: Sequence[str] = (), jetsons: Sequence[str] = ()
) -> tuple[Job, ...]:
    """Return the jobs for runners with GPUs of these compute capabilities and boards of these Jetson Linux releases.

    A target that needs no GPU runs on GitHub's own runners, and also on each GPU that fits. Self-hosted runners
    carry, beside GitHub's own labels, `gpu` and `sm-<capability>`, or `jetson` and `l4t-<release>`. Raises
    HandledError for more jobs than a matrix holds.
    """
    made = [job for target in targets for job in _jobs(target, gpus, jetsons)]
    if len(made) > MOST_JOBS:
        raise HandledError(
            f"{len(made)} jobs, and a GitHub matrix holds {MOST_JOBS}; select fewer with --target or give fewer --gpu"
        )
    return tuple(made)


def _job(target: Target, place: str, runs_on: Sequence[str]) -> Job:
    """Return a target's job; `runs_on` are labels that the runner must have, all of them."""
    return {
        "name": f"{target.name} on {place}" if place else target.name,
        "target": target.name,
        "runs-on": list(runs_on),
        "timeout-minutes": _MINUTES,
        "run-minutes": _MINUTES - _AROUND,
    }


def _jobs(target: Target, gpus: Sequence[str], jetsons: Sequence[str]) -> list[Job]:
    needs = target.needs
    base = ("self-hosted", "linux", _SELF_HOSTED[needs.architecture])
    if target.platform == "jetson":
        return [
            _job(target, f"Jetson Linux {release}", (*base, "jetson", f"l4t-{release}"))
            for release in jetsons
            if needs.l4t_fits(release)
        ]
    # A target that only builds without a GPU shows numbers and latency on one.
    made = [] if needs.gpu else [_job(target, "", [_HOSTED[needs.architecture]])]
    if not needs.compute_capability or needs.architecture != "x86_64":
        return made
    return made + [
        _job(target, f"SM {gpu}", (*base, "gpu", f"sm-{gpu}"))
        for gpu in gpus
        if needs.compute_capability_fits(gpu)
    ]


_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")


def add_ci_matrix(command: argparse.ArgumentParser) -> None:
    """Add the selection and the runners' GPUs and boards."""
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


def do_ci_matrix(options: argparse.Namespace) -> int:
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
    print(json.dumps({"include": made}))
    return EXIT_OK
