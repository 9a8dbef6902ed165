"""(c) A fresh container a cell and (d) a process a cell in a warm container, against a run with agents in containers.

Both do what a short script does: read the model from standard input, parse it and build it. They are confined as the
harness confines its agents.
"""

from __future__ import annotations

import shlex
import subprocess
import uuid
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.suite.figures import Figure, Limit, Section, ratios
from benchmarks.suite.models import Model, Pace, pace, sampled
from benchmarks.suite.running import run
from harness.errors import InfraError
from harness.run.launch import docker_command_line
from harness.run.provision import look_at_host, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.suite.running import Setting
    from harness.matrix import Target

FRESH, WARM = "a fresh container a cell", "a process a cell in a warm container"
#: Builds a model as any script does; ends with 0 where there is an engine.
SCRIPT = """
import sys
import tensorrt_rtx as trt
logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
strong = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
network = builder.create_network(0 if strong is None else 1 << int(strong))
parsed = trt.OnnxParser(network, logger).parse(sys.stdin.buffer.read())
plan = builder.build_serialized_network(network, builder.create_builder_config()) if parsed else None
sys.exit(plan is None)
"""
_SLEEP = "import time; time.sleep(86400)"


def measure_fresh(setting: Setting) -> Section:
    """Start and remove a container for each model."""
    return _against(setting, "c", FRESH, Limit(4, least=True), _fresh)


def measure_warm(setting: Setting) -> Section:
    """Start a container for each target, and a process in it for each model."""
    return _against(setting, "d", WARM, None, _warm)


def _against(
    setting: Setting,
    letter: str,
    title: str,
    limit: Limit | None,
    other: Callable[[Setting, Sequence[Model], dict[str, str]], Pace],
) -> Section:
    host = look_at_host()
    if host.docker is None:
        return Section(letter, title, skipped=host.docker_reason)
    models = sampled(setting)
    targets = {model.target.name: model.target for model in models}
    images = {name: prepare(target, "docker").image for name, target in targets.items()}
    ours, theirs = [], []
    for _ in setting.rounds(letter):
        mine = run(setting.folder(), "--via", "docker", "-j", str(setting.cores), *setting.selection)
        ours.append(len(mine.cells) / mine.ran.seconds)
        theirs.append(other(setting, models, images))
    rates = tuple(each.a_second for each in theirs)
    figures = (
        Figure(f"whole run in containers over {title}", "x", ratios(ours, rates), limit),
        Figure("whole run in containers", "cells/s", tuple(ours)),
        Figure(title, "models/s", rates),
    )
    note = f"{title}: engines came of {theirs[-1].built} of the {theirs[-1].count} models."
    return Section(letter, title, figures, notes=(note,))


def _fresh(setting: Setting, models: Sequence[Model], images: dict[str, str]) -> Pace:
    def built(model: Model) -> bool:
        line = docker_command_line(model.target, images[model.target.name], argv=("-c", SCRIPT))
        return _fed(shlex.split(line), model)

    return pace(models, setting.cores, built)


def _warm(setting: Setting, models: Sequence[Model], images: dict[str, str]) -> Pace:
    targets = {model.target.name: model.target for model in models}

    def built(names: dict[str, str], model: Model) -> bool:
        words = ["docker", "exec", "-i", names[model.target.name], "python3", "-c", SCRIPT]
        return _fed(words, model)

    with ExitStack() as stack:
        names = {
            name: stack.enter_context(_sleeping(target, images[name])) for name, target in targets.items()
        }
        return pace(models, setting.cores, partial(built, names))


@contextmanager
def _sleeping(target: Target, image: str) -> Iterator[str]:
    """Yield the name of a container that does nothing, and remove it at the end."""
    name = f"trt-compat-benchmark-{uuid.uuid4().hex[:12]}"
    words = shlex.split(docker_command_line(target, image, argv=("-c", _SLEEP)))
    words[words.index("-i") : words.index("-i") + 1] = ["--detach", "--name", name]
    try:
        _checked(words)
        yield name
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)


def _checked(words: Sequence[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfraError(f"{' '.join(words[:3])}: {' '.join(done.stderr.split())[-600:]}")


def _fed(words: Sequence[str], model: Model) -> bool:
    """Run a command with the model as its input, and tell whether an engine came of it."""
    with model.file.open("rb") as data:
        done = subprocess.run(words, stdin=data, capture_output=True, text=True, check=False)
    # What `docker run` and `docker exec` end with where nothing of the script ran.
    if done.returncode in (125, 126, 127):
        raise InfraError(f"{' '.join(words[:2])}: {' '.join(done.stderr.split())[-600:]}")
    return done.returncode == 0
