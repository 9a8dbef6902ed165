"""What every build has to say to the engine, and in which order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.contract.meaning.job import Job, words
from tests.contract.traces import Call

_BUILD = "Builder.build_serialized_network"
_PARSER = "OnnxParser"
_LOAD = "Runtime.deserialize_cuda_engine"
_CAPABILITY = "IBuilderConfig.set_compute_capability"
_PARENTS = {"entropy": "IInt8EntropyCalibrator2", "minmax": "IInt8MinMaxCalibrator"}


def missing_api(job: Job) -> Iterator[str]:
    """A build ends by a missing name exactly where its recipe needs it and the version lacks it."""
    if job.kind != "build":
        return
    lacking = [name for name in _needed(job) if name not in job.names]
    if job.end == "missing_api" and job.detail not in lacking:
        yield f"it ends for want of {job.detail}, which its recipe does not need here"
    if job.done and lacking:
        yield f"it is done without {lacking[0]}, which its recipe needs"


def _needed(job: Job) -> list[str]:
    recipe, names = job.recipe, []
    if recipe["typing"] == "strong" and job.weak_typing:
        names.append("NetworkDefinitionCreationFlag.STRONGLY_TYPED")
    if _by_flags(job):
        names += [f"BuilderFlag.{flag}" for flag in recipe["flags"]]
    if recipe["calibrator"]:
        names.append("IBuilderConfig.int8_calibrator")
        names += ["IBuilderConfig.set_calibration_profile"] * bool(recipe["profiles"])
    names += [f"OnnxParserFlag.{name}" for name, _ in recipe["parser_flags"]]
    if capability := job.scenario.job.get("compute_capability"):
        names += [_CAPABILITY, f"ComputeCapability.SM{capability.replace('.', '')}"]
    return names


def _by_flags(job: Job) -> bool:
    """Tell whether flags decide precision: where it is asked for, or where the version knows nothing else."""
    return job.recipe["typing"] == "weak" or (job.recipe["typing"] == "graph" and job.weak_typing)


def creation_flags(job: Job) -> Iterator[str]:
    """A network is made with an explicit batch where there is that flag, and strongly typed exactly where wanted."""
    typing = job.recipe["typing"]
    strong = typing == "strong" or (typing == "graph" and not job.weak_typing)
    asked = ["EXPLICIT_BATCH", *(["STRONGLY_TYPED"] if strong else [])]
    wanted = {name for name in asked if f"NetworkDefinitionCreationFlag.{name}" in job.names}
    for _, call in job.find("Builder.create_network"):
        given = set(filter(None, call.arguments[0].split(" | "))) if call.arguments else set()
        if given != wanted:
            yield f"the network is made with {words(given)}, not {words(wanted)}"


def builder_flags(job: Job) -> Iterator[str]:
    """The builder's flags are the recipe's, where flags decide precision, and the fixed one."""
    wanted = {"DISABLE_TIMING_CACHE", *(job.recipe["flags"] if _by_flags(job) else ())}
    for at, _ in job.find(_BUILD):
        given: set[str] = set()
        for call in job.before(at, "IBuilderConfig.set_flag", "IBuilderConfig.clear_flag"):
            name = {call.arguments[0].removeprefix("BuilderFlag.")}
            given = given | name if call.call.endswith("set_flag") else given - name
        if given != wanted:
            yield f"the builder's flags are {words(given)}, not {words(wanted)}"


def parser_flags(job: Job) -> Iterator[str]:
    """Each parser flag of the recipe is set or cleared before the model is parsed, and no other is touched."""
    wanted = [f"{name} {'set' if on else 'cleared'}" for name, on in job.recipe["parser_flags"]]
    said = {"set_flag": "set", "clear_flag": "cleared"}
    for at, _ in job.find("OnnxParser.parse"):
        touched = job.before(at, "OnnxParser.set_flag", "OnnxParser.clear_flag")
        given = [
            f"{call.arguments[0].removeprefix('OnnxParserFlag.')} {said[call.call.rpartition('.')[2]]}"
            for call in touched
        ]
        if given != wanted:
            yield f"the model is parsed with {words(given)}, not {words(wanted)}"


def model(job: Job) -> Iterator[str]:
    """The parser fills the network that is then built, from the job's own bytes."""
    for at, call in job.find("OnnxParser.parse"):
        if bytes.fromhex(call.data) != job.part("model"):
            yield "the parser is not given the job's model"
        filled = [made.arguments[0] for made in job.before(at, _PARSER) if made.result == call.on]
        for _, built in job.find(_BUILD):
            if [built.arguments[0]] != filled:
                yield f"{built.arguments[0]} is built, and the parser filled {words(filled)}"


def settings(job: Job) -> Iterator[str]:
    """The workspace is the recipe's, the engine's own where that has none, and layers are told in detail."""
    mib = job.recipe["workspace_mib"]
    limits = [] if mib is None else [f"MemoryPoolType.WORKSPACE, {mib << 20}"]
    for at, built in job.find(_BUILD):
        pools = [call for call in job.before(at, "IBuilderConfig.set_memory_pool_limit") if _on(call, built)]
        given = [", ".join(call.arguments) for call in pools]
        if given != limits:
            yield f"the memory pools are limited to {words(given)}, not {words(limits)}"
        told = [call.arguments[0] for call in job.before(at, "IBuilderConfig.profiling_verbosity =")]
        if told != ["ProfilingVerbosity.DETAILED"]:
            yield "layers are not told in detail"


def _on(call: Call, built: Call) -> bool:
    """Tell whether a call is on the config that is built with."""
    return call.on == built.arguments[1]


def outputs(job: Job) -> Iterator[str]:
    """Every tensor that the recipe marks is made an output, after the parser has filled the network."""
    wanted = len(job.recipe["mark_outputs"])
    for at, built in job.find(_BUILD):
        parsed = min((place for place, _ in job.find("OnnxParser.parse")), default=at)
        marked = [call for place, call in job.find("INetworkDefinition.mark_output") if parsed < place < at]
        if len(marked) != wanted or any(call.on != built.arguments[0] for call in marked):
            yield f"{len(marked)} tensors are marked as outputs, not {wanted}"


def profiles(job: Job) -> Iterator[str]:
    """A profile has the recipe's shapes in the order of their size, is the config's, and the calibrator's too."""
    wanted = [
        [entry["input"], *(list(entry[bound]) for bound in ("minimum", "optimum", "maximum"))]
        for entry in job.recipe["profiles"]
    ]
    for at, built in job.find(_BUILD):
        shapes = job.before(at, "IOptimizationProfile.set_shape")
        given = [[call.arguments[0].strip('"'), *map(_numbers, call.arguments[1:])] for call in shapes]
        for least, best, most in ([*map(_numbers, call.arguments[1:])] for call in shapes):
            if not all(low <= middle <= high for low, middle, high in zip(least, best, most, strict=True)):
                yield f"the profile's shapes {least}, {best}, {most} are not least, best and greatest"
        if given != wanted:
            yield f"the profile is {given}, not {wanted}"
        there = {call.on for call in shapes}
        added = {
            call.arguments[0]
            for call in job.before(at, "IBuilderConfig.add_optimization_profile")
            if _on(call, built)
        }
        if added != there:
            yield f"the config has the profiles {words(added)}, not {words(there)}"
        calibrating = {call.arguments[0] for call in job.before(at, "IBuilderConfig.set_calibration_profile")}
        if calibrating != (there if job.recipe["calibrator"] else set()):
            yield f"the calibration profile is {words(calibrating)}, and the profile {words(there)}"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def calibrator(job: Job) -> Iterator[str]:
    """The config has a calibrator of the recipe's kind, and none where the recipe has none."""
    asked = job.recipe["calibrator"]
    wanted = [_PARENTS[asked["kind"]]] if asked else []
    for at, built in job.find(_BUILD):
        given = [
            call.arguments[0].partition("#")[0]
            for call in job.before(at, "IBuilderConfig.int8_calibrator =")
            if _on(call, built)
        ]
        if given != wanted:
            yield f"the calibrator is {words(given)}, not {words(wanted)}"


def capability(job: Job) -> Iterator[str]:
    """An engine for another GPU is asked for by its one compute capability."""
    asked = job.scenario.job.get("compute_capability")
    wanted = [f"ComputeCapability.SM{asked.replace('.', '')} at 0 of 1"] if asked else []
    for at, _ in job.find(_BUILD):
        counts = [call.arguments[0] for call in job.before(at, "IBuilderConfig.num_compute_capabilities =")]
        given = [" at ".join(call.arguments) for call in job.before(at, _CAPABILITY)]
        if [f"{each} of {words(counts)}" for each in given] != wanted:
            yield f"the compute capability is {words(given)} of {words(counts)}, not {words(wanted)}"


def plan(job: Job) -> Iterator[str]:
    """What the builder made is what the job hands on."""
    built = [at for at, _ in job.find(_BUILD)]
    handed = [
        at for at, call in job.find("emit") if call.arguments[0] == '"plan"' and call.data == b"plan".hex()
    ]
    if job.kind == "build" and job.done and not (len(built) == len(handed) == 1 and built < handed):
        yield "the plan that was built is not handed on"


def plugins(job: Job) -> Iterator[str]:
    """Before a parser or a runtime needs them, TensorRT's own plugins are known, and the recipe's."""
    taken = {"INetworkDefinition.add_plugin_v2", "INetworkDefinition.add_plugin_v3"} & job.names
    if job.kind == "preflight":
        return
    for at, call in job.find(_PARSER, _LOAD):
        if "init_libnvinfer_plugins" in job.names and not job.before(at, "init_libnvinfer_plugins"):
            yield f"{call.call} is called before init_libnvinfer_plugins"
        own = job.before(at, "CDLL", "IPluginRegistry.register_creator")
        libraries = len(job.recipe.get("libraries", ()))
        wanted = libraries + bool(job.recipe["plugin"] and taken)
        if wanted and not own:
            yield f"{call.call} is called before the recipe's plugin is known"
        if len(own) > libraries and not (job.recipe["plugin"] and taken):
            yield "a plugin is made known that the recipe does not name"


RULES = (
    missing_api,
    creation_flags,
    builder_flags,
    parser_flags,
    model,
    settings,
    outputs,
    profiles,
    calibrator,
    capability,
    plan,
    plugins,
)
