"""TensorRT and TensorRT for RTX: one adapter, steered by what the installed version has and never by its number.

`api` holds the module and asks it what it can do, `preflight` tries what every cell needs, `build` makes the plan,
`execute` loads and runs it on a GPU.
"""

from typing import Any, Dict

from harness.agent import calibration
from harness.agent.engines import Emit, report_failure
from harness.agent.engines.tensorrt import api, build, execute, preflight
from harness.agent.protocol import Message, split_parts


def preload(engine: str) -> Dict[str, str]:
    """Import `tensorrt` or `tensorrt_rtx` and return what it and the machine say of themselves."""
    return api.load(engine)


def run(job: Message, body: bytes, emit: Emit) -> None:
    """Do one job: "preflight", "build" (parts: model and inputs) or "run" (parts: plan and inputs)."""
    parts = split_parts(job["parts"], body)
    work: Dict[str, Any] = {"preflight": preflight.preflight, "build": build.build, "run": execute.run}
    report_failure(emit, lambda: work[job["kind"]](job, parts, emit))
    blamed = calibration.blame(calibration.raised)
    if blamed is not None:
        who, sentence = blamed
        if who == "agent":
            emit("agent_fault", text=sentence)
        else:
            emit("message", severity="ERROR", text=sentence)
