"""The jobs that the contract test gives to the adapter: every distinct recipe of the cases, and every way to fail."""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.agent.protocol import BODIES_LIMIT
from harness.case import Calibrator, Plugin, Profile, Recipe, Typing, load_cases
from harness.case.model import Library
from harness.matrix import load_matrix
from harness.run.session import TIMING

ROOT = Path(__file__).resolve().parents[2]


def _bytes(code: str, *values: float) -> str:
    """Return numbers as a part's bytes, one character each."""
    return struct.pack(f"<{len(values)}{code}", *values).decode("latin-1")


#: One network input: float32 of shape [1, 2].
INPUT = {"x": _bytes("f", 1.5, -2.0), "shape:x": "1,2"}


@dataclass(frozen=True)
class Scenario:
    """One job, what the engine answers in it, and how it has to end where every API that it needs is there.

    `ends` is done, failed, unavailable or agent_fault; `lacking` is a name and the end of versions that do not have it.
    `answers` are by "Class.member" and replace what the engine says, one after the other where it is a list. `without`
    takes away the CUDA "driver", `fails` is a function of the driver that fails, `null` a factory of the
    library that gives nothing, and `plugins` the image's folder of compiled plugins.
    """

    name: str
    job: dict[str, Any]
    ends: str = "done"
    lacking: tuple[str, str] = ("", "")
    parts: dict[str, str] = field(default_factory=lambda: {"model": "onnx", "plan": "plan", **INPUT})
    answers: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    fails: str = ""
    null: str = ""
    plugins: str = "/nonexistent"

    def as_dict(self) -> dict[str, Any]:
        """Return the scenario as plain JSON data."""
        return asdict(self)


def _build(recipe: Recipe, capability: str | None = None) -> dict[str, Any]:
    job = {"kind": "build", "recipe": recipe.as_dict(), "compute_capability": capability}
    return {**job, "weights": "", "plan": True}


def _run(recipe: Recipe = Recipe()) -> dict[str, Any]:  # noqa: B008  (frozen)
    timing = {**TIMING, "warmup_s": 0.0, "budget_s": 0.0}
    return {"kind": "run", "recipe": recipe.as_dict(), "compute_capability": None, "timing": timing}


def _preflight(*, needs_gpu: bool) -> dict[str, Any]:
    return {"kind": "preflight", "needs_gpu": needs_gpu}


def _of_cases(plugin_library: str) -> list[Scenario]:
    """Return a build for every distinct recipe of the cases, and a run where it loads a plugin, which is compiled."""
    recipes: dict[str, tuple[str, Recipe]] = {}
    for case in load_cases(ROOT / "cases"):
        for variant in case:
            recipes.setdefault(variant.recipe.sha256(), (f"{case.name}.{variant.name}", variant.recipe))
    found = []
    for name, recipe in recipes.values():
        # The stub has one tensor, which is the input, what a layer puts out, and what is to be marked.
        tensor = recipe.mark_outputs[0] if recipe.mark_outputs else "x"
        parts = {"model": "onnx", tensor: INPUT["x"], f"shape:{tensor}": INPUT["shape:x"]}
        answers = {"ITensor.name": tensor}
        build = Scenario(
            f"build {name}", _build(recipe), parts=parts, answers=answers, plugins=plugin_library
        )
        found.append(build)
        if recipe.plugin is not None:
            found.append(Scenario(f"run {name}", _run(recipe), plugins=plugin_library))
    return found


#: A job for a compute capability that no version can build for.
NOWHERE = "build for 1.0"


def _of_targets() -> list[Scenario]:
    """Return a build for every compute capability that the matrix asks for, and NOWHERE."""
    targets = load_matrix(ROOT / "matrix.yaml").targets
    wanted = {target.compute_capability for target in targets if target.compute_capability}
    builds = [Scenario(f"build for {number}", _build(Recipe(), number)) for number in sorted(wanted)]
    return [*builds, Scenario(NOWHERE, _build(Recipe(), "1.0"))]


#: One recipe for each thing that a recipe can ask for, whether or not a case does: the rows of data/capabilities.tsv.
FEATURES = {
    "strongly typed network": Recipe(Typing.STRONG),
    "precision of the graph (Q/DQ, Cast)": Recipe(flags=("INT8",)),
    **{
        f"weak typing, builder flag {flag}": Recipe(Typing.WEAK, flags=(flag,))
        for flag in ("FP16", "BF16", "INT8", "FP8", "OBEY_PRECISION_CONSTRAINTS")
    },
    "entropy calibrator": Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy")),
    "min-max calibrator": Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("minmax")),
    "NATIVE_INSTANCENORM set": Recipe(parser_flags=(("NATIVE_INSTANCENORM", True),)),
    "NATIVE_INSTANCENORM cleared": Recipe(parser_flags=(("NATIVE_INSTANCENORM", False),)),
    "ENABLE_PLUGIN_OVERRIDE set": Recipe(parser_flags=(("ENABLE_PLUGIN_OVERRIDE", True),)),
    "workspace limit": Recipe(workspace_mib=64),
    "tensors marked as output": Recipe(mark_outputs=("x",)),
    "optimisation profile": Recipe(profiles=(Profile("x", (1, 2), (1, 2), (4, 2)),)),
    "optimisation profile and calibrator": Recipe(
        Typing.WEAK,
        flags=("INT8",),
        calibrator=Calibrator("entropy"),
        profiles=(Profile("x", (1, 2), (1, 2), (4, 2)),),
    ),
}

_ENTROPY = FEATURES["entropy calibrator"]
_OWN = Recipe(Typing.WEAK, flags=("INT8",), calibrator=Calibrator("entropy", 2, data="f" * 64))
#: Two batches of the network's input.
_BATCHES = {"calibration:x": _bytes("f", 1, 2, 3, 4), "shape:calibration:x": "2,1,2"}


def _of_inputs() -> list[Scenario]:
    """Return a run for every way in which an input's bytes depend on its type and shape."""

    def run(name: str, data: str, dtype: str, shape: str = "1,2") -> Scenario:
        parts = {"plan": "plan", "x": data, "shape:x": shape}
        answers = {"ICudaEngine.get_tensor_dtype": {"enum": f"DataType.{dtype}"}}
        return Scenario(f"run, {name}", _run(), parts=parts, answers=answers)

    return [
        # The bindings of 8.x know no INT64: their parser makes it INT32, and the host sends what the model says.
        run("INT64 input made INT32", _bytes("q", 3, -4), "INT32"),
        run("DOUBLE input made FLOAT", _bytes("d", 1.5, -2.0), "FLOAT"),
        run("scalar", _bytes("f", 1.5), "FLOAT", ""),
        run("empty tensor", "", "FLOAT", "0,2"),
        run("BOOL", "\0\1", "BOOL"),
        run("FP8", "\1\2", "FP8"),
        run("INT4, two in a byte", "\1", "INT4"),
        run("FP4, two in a byte and a half", "\1\2", "FP4", "3"),
    ]


def _faults() -> list[Scenario]:
    """Return what can go wrong by the engine's answer."""

    def build(name: str, recipe: Recipe = Recipe(), **changes: Any) -> Scenario:  # noqa: B008  (frozen)
        return Scenario(
            f"build, {name}", _build(recipe, changes.pop("capability", None)), "failed", **changes
        )

    def run(name: str, **answers: Any) -> Scenario:
        return Scenario(
            f"run, {name}", _run(), "failed", answers={k.replace("__", "."): v for k, v in answers.items()}
        )

    return [
        build("parser refuses", answers={"OnnxParser.parse": False}),
        build("no engine", answers={"Builder.build_serialized_network": None}),
        build("no tensor of the name", Recipe(mark_outputs=("nowhere",))),
        build(
            "compute capability refused",
            capability="8.9",
            answers={"IBuilderConfig.set_compute_capability": False},
        ),
        run("plan refused", Runtime__deserialize_cuda_engine=None),
        run("no context", ICudaEngine__create_execution_context=None),
        run("shape refused", IExecutionContext__set_input_shape=False),
        run("run refused", IExecutionContext__execute_async_v3=False),
        run("timed run refused", IExecutionContext__execute_async_v3=[True, False]),
        run("another size than was given", ICudaEngine__get_tensor_dtype={"enum": "DataType.HALF"}),
        # The name of no DataType so far stands for that of a later version.
        run("a type that the wire has not", ICudaEngine__get_tensor_dtype={"enum": "TensorFormat.LINEAR"}),
        *_machine_faults(),
        # TensorRT goes on as if the batches had ended, and may build an engine all the same.
        Scenario("run, a copy fails", _run(), "failed", fails="cuMemcpyHtoDAsync_v2"),
        Scenario("build, calibrator and CUDA error", _build(_ENTROPY), fails="cuMemcpyHtoDAsync_v2"),
        Scenario(
            "build, own batches of another size",
            _build(_OWN),
            "failed",
            parts={"model": "onnx", **INPUT, **_BATCHES, "shape:calibration:x": "3,1,2"},
            answers={"ITensor.dtype": {"enum": "DataType.FLOAT"}},
        ),
        Scenario(
            "build, calibrator and half a number",
            _build(_ENTROPY),
            "agent_fault",
            parts={"model": "onnx", "x": "\0" * 7, "shape:x": "1,2"},
        ),
    ]


def _machine_faults() -> list[Scenario]:
    """Return what the machine and not the engine is to blame for, in a preflight and in a cell."""

    def fault(name: str, job: dict[str, Any], **changes: Any) -> Scenario:
        return Scenario(name, job, "agent_fault", **changes)

    both = (("preflight", _preflight(needs_gpu=True)), ("build", _build(Recipe())))
    loads = (("preflight", _preflight(needs_gpu=True)), ("run", _run()))
    preflight, null = _preflight(needs_gpu=True), {"Builder.create_network": None}
    return [
        fault("preflight, no driver", preflight, without=("driver",)),
        fault("preflight, CUDA does not start", preflight, fails="cuInit"),
        fault("preflight, no context", preflight, fails="cuDevicePrimaryCtxRetain"),
        fault("preflight, no memory", preflight, fails="cuMemAlloc_v2"),
        fault("preflight, a copy fails", preflight, fails="cuMemcpyDtoHAsync_v2"),
        fault("preflight, a copy does nothing", preflight, fails="silently cuMemcpyHtoDAsync_v2"),
        fault("preflight, an event fails", preflight, fails="cuEventSynchronize"),
        *(
            fault(f"{kind}, null {what}", job, null=f"create{what}")
            for what, kinds in (("InferBuilder", both), ("NvOnnxParser", both), ("InferRuntime", loads))
            for kind, job in kinds
        ),
        fault("preflight, null network", preflight, answers=null),
        fault("preflight, null config", preflight, answers={"Builder.create_builder_config": None}),
        fault("build, null network", _build(Recipe()), answers=null),
        fault(
            "build, more than the stream takes",
            _build(Recipe()),
            answers={"Builder.build_serialized_network": {"zeros": BODIES_LIMIT + 1}},
        ),
        fault("build, null config", _build(Recipe()), answers={"Builder.create_builder_config": None}),
        fault("build, calibrator and no driver", _build(_ENTROPY), without=("driver",)),
        fault("run, no driver", _run(), without=("driver",)),
        fault("run, CUDA does not start", _run(), fails="cuInit"),
    ]


def _plugins(folder: Path) -> list[Scenario]:
    """Return the ways of a plugin; `folder` has a subfolder for each state in which an image can be."""
    build = _build(Recipe(plugin=Plugin("CompatIdentity", "int8_linear")))
    # TensorRT for RTX takes no plugin, and so nothing is loaded for it.
    untaken = ("INetworkDefinition.add_plugin_v2", "done")
    broken, absent = str(folder / "broken"), str(folder / "absent")
    own = (folder / "good" / "plugin.so").resolve().with_name("own.so").read_bytes().decode("latin-1")
    libraries = _build(Recipe(libraries=(Library("own.so", "f" * 64),)))
    parts = {"model": "onnx", **INPUT}
    return [
        Scenario("own library", libraries, parts={**parts, "library:" + "f" * 64: own}),
        Scenario(
            "own library that does not load",
            libraries,
            "unavailable",
            parts={**parts, "library:" + "f" * 64: "no"},
        ),
        Scenario("plugin in C++", build, plugins=str(folder / "good")),
        Scenario("plugin in C++ that does not load", build, "unavailable", untaken, plugins=broken),
        Scenario("no plugin", build, "unavailable", untaken, plugins=absent),
        Scenario("no folder of plugins", build, "unavailable", untaken),
    ]


def scenarios(folder: Path) -> list[Scenario]:
    """Return every job; `folder` is `plugin_folders`'."""
    features = [Scenario(f"feature {name}", _build(recipe)) for name, recipe in FEATURES.items()]
    others = [
        Scenario("preflight", _preflight(needs_gpu=True)),
        Scenario("preflight, no GPU needed and none there", _preflight(needs_gpu=False), without=("driver",)),
        Scenario("preflight, no GPU needed and a broken one", _preflight(needs_gpu=False), fails="cuInit"),
        Scenario("run", _run()),
        Scenario(
            "run, two inputs and two outputs",
            _run(),
            parts={"plan": "plan", **INPUT, "x2": _bytes("f", *range(6)), "shape:x2": "2,3"},
            answers={"ICudaEngine.num_io_tensors": 4},
        ),
        Scenario(
            "build, own batches",
            _build(_OWN),
            parts={"model": "onnx", **INPUT, **_BATCHES},
            answers={"ITensor.dtype": {"enum": "DataType.FLOAT"}},
        ),
        Scenario("build, calibrator and no flag", _build(Recipe(calibrator=Calibrator("entropy")))),
        *_of_inputs(),
    ]
    return [
        *_of_cases(str(folder / "good")),
        *_of_targets(),
        *features,
        *_plugins(folder),
        *others,
        *_faults(),
    ]


def plugin_folders(folder: Path, library: Path) -> Path:
    """Make a folder for each state of an image's plugins, with `library` for a plugin; returns `folder`."""
    for name in ("good", "broken", "absent"):
        (folder / name).mkdir(parents=True)
    (folder / "good" / "plugin.so").symlink_to(library)
    (folder / "broken" / "plugin.so").write_text("not a library", encoding="ascii")
    (folder / "absent" / "absent").write_text("no headers here", encoding="ascii")
    return folder
