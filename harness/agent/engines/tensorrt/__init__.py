"""TensorRT and TensorRT for RTX: one adapter, steered by the installed version's abilities and never by its number.

`api` holds the module and asks it for its abilities, `build` makes the plan, `execute` loads and runs it on a GPU.
"""

from typing import Any, Dict

from harness.agent import calibration, gpu
from harness.agent.engines import Emit, phase, report_failure
from harness.agent.engines.tensorrt import api, build, execute
from harness.agent.protocol import Message, split_parts


def preload(engine: str) -> Dict[str, str]:
    """Import `tensorrt` or `tensorrt_rtx` and return its facts and the machine's."""
    return api.load(engine)


def run(job: Message, body: bytes, emit: Emit) -> None:
    """Do one job: "preflight", "build" (parts: model and inputs) or "run" (parts: plan and inputs)."""
    parts = split_parts(job["parts"], body)
    calibration.raised.clear()
    work: Dict[str, Any] = {"preflight": preflight, "build": build.build, "run": execute.run}
    report_failure(emit, lambda: work[job["kind"]](job, parts, emit))
    blamed = calibration.blame(calibration.raised)
    if blamed is not None:
        who, sentence = blamed
        if who == "agent":
            emit("agent_fault", text=sentence)
        else:
            emit("message", severity="ERROR", text=sentence)


def preflight(job: Message, _parts: Dict[str, bytes], emit: Emit) -> None:
    """Report the GPU as a fact and make a builder, a network, a parser, a config and a runtime; raises MachineFault.

    It is a job of its own, because a CUDA context does not survive a fork, and because some of these end the process on
    a bad machine: the phase that was begun names it.
    """
    with phase(emit, "the GPU"):
        usable = gpu.check(emit, needed=job["needs_gpu"])
    logger = api.logger_for(emit)
    with phase(emit, "builder, network, parser and config"):
        builder, network, parser = build.make_parser(logger, "graph")
        config = api.made(logger, "create_builder_config", builder.create_builder_config)
    del config, parser, network, builder
    # Without a GPU no engine is loaded.
    if usable:
        with phase(emit, "the runtime"):
            runtime = api.made(logger, "Runtime", api.trt.Runtime, logger)
            # The first use of a null one ends this process here, and not that of a cell.
            getattr(runtime, "max_threads")  # noqa: B009
