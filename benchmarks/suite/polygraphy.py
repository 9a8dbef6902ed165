"""(b) Polygraphy with a process a model, on the same models and versions, on as many cores."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import uv
from platformdirs import user_cache_dir

from benchmarks.suite.figures import Figure, Limit, Section, ratios
from benchmarks.suite.models import Pace, pace, sampled
from benchmarks.suite.running import run
from harness.errors import InfraError
from harness.run.provision.cache import make_once

if TYPE_CHECKING:
    from benchmarks.suite.models import Model
    from benchmarks.suite.running import Setting
    from harness.matrix import Target

TITLE = "Polygraphy, a process a model"
_POLYGRAPHY = "polygraphy==0.53.6"
#: It is asked at import which of the two engines it is to use.
_ENVIRONMENT = {"POLYGRAPHY_USE_TENSORRT_RTX": "1"}


def measure(setting: Setting) -> Section:
    """Run the harness, then Polygraphy, in each round."""
    models = sampled(setting)
    programs = {model.target.name: _program(model.target) for model in models}
    ours, theirs = [], []
    for _ in setting.rounds("b"):
        mine = run(setting.folder(), "--via", "venv", "-j", str(setting.cores), *setting.selection)
        ours.append(len(mine.cells) / mine.ran.seconds)
        theirs.append(pace(models, setting.cores, lambda model: _built(programs[model.target.name], model)))
    return _section(tuple(ours), theirs)


def _section(ours: tuple[float, ...], theirs: list[Pace]) -> Section:
    rates = tuple(each.a_second for each in theirs)
    return Section(
        "b",
        TITLE,
        (
            Figure(f"whole run over {TITLE}", "x", ratios(ours, rates), Limit(4, least=True)),
            Figure("whole run", "cells/s", ours),
            Figure(TITLE, "models/s", rates),
        ),
        notes=(f"{_POLYGRAPHY} made engines of {theirs[-1].built} of the {theirs[-1].count} models.",),
    )


def _program(target: Target) -> Path:
    """Return Polygraphy's program beside the target's engine, in an environment made for it once."""
    name = f"{_POLYGRAPHY}-{target.name}-{target.version}".replace("==", "-")
    folder = make_once(
        Path(user_cache_dir("trt-compat-benchmarks")) / name, lambda partial: _make(target, partial)
    )
    return folder / "bin" / "polygraphy"


def _make(target: Target, folder: Path) -> None:
    program = uv.find_uv_bin()
    python = str(folder / "bin" / "python")
    for words in (
        ["venv", "--quiet", "--relocatable", "--python", target.python, str(folder)],
        ["pip", "install", "--quiet", "--python", python, _POLYGRAPHY, "numpy", *target.packages],
    ):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise InfraError(f"uv {words[0]} of {_POLYGRAPHY}: {' '.join(done.stderr.split())[-600:]}")


def _built(program: Path, model: Model) -> bool:
    # Strongly typed, as the harness builds it and as the newer versions always do.
    words = [str(program), "convert", str(model.file), "--convert-to", "trt", "--strongly-typed"]
    done = subprocess.run(
        [*words, "--output", os.devnull],
        env=os.environ | _ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0
