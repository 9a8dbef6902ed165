"""Runs in a target's own Python, with nothing but the engine beside it: builds engines, or reads those of others.

    python probe.py build FOLDER   writes <version>-<what>.engine and .cache there; prints what was built and what not
    python probe.py read FOLDER    prints what this version says of every file there

One logger for all: the library keeps the first that it was given.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

trt: Any = importlib.import_module("tensorrt_rtx")
SEVERE = ("INTERNAL_ERROR", "ERROR", "WARNING")
#: Said of every failure on a machine without a GPU, and of the typing of every network of 1.4: neither is an answer.
NOISE = ("In catchCudaError at", "strongly typed is enabled by default")


class Logger(trt.ILogger):  # type: ignore[misc]  # the module is known when it runs
    """Keeps what is said, worst first."""

    def __init__(self) -> None:
        trt.ILogger.__init__(self)
        self.said: list[tuple[int, str]] = []

    def log(self, severity: Any, text: str) -> None:  # noqa: ANN401
        """Keep a warning or an error."""
        name = str(severity).rpartition(".")[2]
        if name in SEVERE and not any(noise in text for noise in NOISE):
            self.said.append((SEVERE.index(name), text))

    def worst(self) -> str:
        """Return the first of the worst texts since the last call, or ""."""
        said, self.said = self.said, []
        return min(said, key=lambda each: each[0])[1] if said else ""


LOGGER = Logger()
#: The engines that every version reads: for the GPUs that it takes without a word, and for the one that it leaves out.
READ = ("default", "SM75")


def built(change: Callable[[Any], None]) -> tuple[bytes, str, Any]:
    """Return the engine of one ReLU, b"" where there is none, what was said, and its configuration."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network(0)
    relu = network.add_activation(network.add_input("x", trt.float32, (1, 16)), trt.ActivationType.RELU)
    network.mark_output(relu.get_output(0))
    config = builder.create_builder_config()
    change(config)
    engine = builder.build_serialized_network(network, config)
    return bytes(engine or b""), LOGGER.worst(), config


def for_generations(*names: str) -> Callable[[Any], None]:
    """Return what configures a build for GPUs of these compute capabilities."""

    def change(config: Any) -> None:  # noqa: ANN401
        config.num_compute_capabilities = len(names)
        for index, name in enumerate(names):
            config.set_compute_capability(getattr(trt.ComputeCapability, name), index)

    return change


def with_flags(*names: str) -> Callable[[Any], None]:
    """Return what sets builder flags."""

    def change(config: Any) -> None:  # noqa: ANN401
        for name in names:
            config.set_flag(getattr(trt.BuilderFlag, name))

    return change


def with_level(name: str) -> Callable[[Any], None]:
    """Return what asks for engines that run on other GPUs too."""

    def change(config: Any) -> None:  # noqa: ANN401
        config.hardware_compatibility_level = getattr(trt.HardwareCompatibilityLevel, name)

    return change


def build(folder: Path) -> dict[str, Any]:
    """Build one engine a way to build, and a timing cache."""
    generations = [name for name in sorted(trt.ComputeCapability.__members__) if name.startswith("SM")]
    ways: dict[str, Callable[[Any], None]] = {
        "default": lambda _: None,
        **{name: for_generations(name) for name in generations},
        "VERSION_COMPATIBLE": with_flags("VERSION_COMPATIBLE"),
        "VERSION_COMPATIBLE, EXCLUDE_LEAN_RUNTIME": with_flags("VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME"),
        "AMPERE_PLUS": with_level("AMPERE_PLUS"),
    }
    made = []
    for what, change in ways.items():
        engine, said, _ = built(change)
        if what in READ:
            (folder / f"{trt.__version__}-{what}.engine").write_bytes(engine)
        made.append({"what": what, "header": engine[:64].hex(), "said": said})
    warnings.simplefilter("ignore")
    _, said, config = built(lambda config: config.set_timing_cache(config.create_timing_cache(b""), False))
    (folder / f"{trt.__version__}-timing.cache").write_bytes(bytes(config.get_timing_cache().serialize()))
    return {"version": trt.__version__, "built": made}


def read(folder: Path) -> dict[str, Any]:
    """Ask of each engine whether it is valid, load it, and offer each timing cache to a build."""
    runtime = trt.Runtime(LOGGER)
    config = trt.Builder(LOGGER).create_builder_config()
    warnings.simplefilter("ignore")
    LOGGER.worst()
    found = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        answer: dict[str, Any] = {"file": path.stem}
        if path.suffix == ".engine":
            validity, why = runtime.get_engine_validity(data)
            members = trt.EngineInvalidityDiagnostics.__members__.items()
            named = [name for name, value in members if int(value) & int(why)]
            answer |= {"validity": validity.name, "diagnostics": named, "said": LOGGER.worst()}
            answer |= {"loads": runtime.deserialize_cuda_engine(data) is not None}
        else:
            cache = config.create_timing_cache(data)
            answer |= {"accepted": config.set_timing_cache(cache, False)}
        found.append({**answer, "refused": LOGGER.worst()})
    return {"version": trt.__version__, "read": found}


if __name__ == "__main__":
    print(json.dumps({"build": build, "read": read}[sys.argv[1]](Path(sys.argv[2]))))
