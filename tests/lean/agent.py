"""Drives a real agent on the lean core and prints its messages, as JSON, with the standard library alone.

    LD_LIBRARY_PATH=LIBS PYTHONPATH=REPOSITORY:PACKAGES python -m tests.lean.agent

So that it runs on a GPU machine that has nothing else: one agent, two preflights, then each plan twice, each job in a
child of the agent; then, without one, a fresh runtime.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.agent.bootstrap import ARGUMENTS, pack
from harness.agent.protocol import Decoder, encode, join_parts, read_message

ENGINE = "tensorrt_lean_bindings"
#: Seconds after which the agent is ended.
PATIENCE = 300
#: Bytes that are no plans, by their fault.
PLANS = {"zeros": bytes(4096), "text": b"not a plan", "nothing": b""}
Events = list[dict[str, Any]]


class Agent:
    """One agent on the lean core."""

    def __init__(self) -> None:
        command = [sys.executable, *ARGUMENTS]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._end = threading.Timer(PATIENCE, self._process.kill)
        self._end.start()
        self._decoder = Decoder()
        self._waiting: Events = []
        self._send(pack() + encode({"type": "start", "engine": ENGINE, "adapter": "tensorrt"}))
        self.hello = self._next()

    @property
    def pid(self) -> int:
        """Return the agent's process."""
        return self._process.pid

    def run(self, kind: str, **parts: bytes) -> Events:
        """Run a job and return its messages."""
        index, body = join_parts(list(parts.items()))
        job = {
            "type": "job",
            "kind": kind,
            "timeout_s": 60,
            "memory_mib": 8192,
            "fresh": True,
            "keep": False,
            "recipe": {"plugin": None},
            "needs_gpu": False,
            "timing": {
                "warmup_s": 0.0,
                "iterations": 1,
                "window_s": 0.0,
                "most": 1,
                "budget_s": 1.0,
                "graph": True,
            },
            "parts": index,
        }
        self._send(encode(job, body))
        said = [self._next()]
        while said[-1]["type"] != "end":
            said.append(self._next())
        return said

    def close(self) -> None:
        """End the agent."""
        self._end.cancel()
        self._process.kill()
        self._process.communicate()

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while not self._waiting:
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            assert data, "the agent ended"
            self._waiting += [read_message(frame.head) for frame in self._decoder.feed(data)]
        return self._waiting.pop(0)


def bare_runtime() -> dict[str, Any]:
    """Return the fate of a runtime that is made without a look at the GPU: by the adapter, and as it is."""
    from harness.agent.engines import MachineFault
    from harness.agent.engines.tensorrt import api

    api.load(ENGINE)

    def by_the_adapter() -> str:
        try:
            return str(api.make_runtime(api.logger_for(lambda *_args, **_fields: None)).max_threads)
        except MachineFault as error:
            return str(error)

    def as_it_is() -> str:
        runtime = api.trt.Runtime(api.logger_for(lambda *_args, **_fields: None))
        return "plan: {}".format(runtime.deserialize_cuda_engine(b"not a plan"))

    return {"by the adapter": in_child(by_the_adapter), "as it is": in_child(as_it_is)}


def in_child(work: Callable[[], str]) -> dict[str, Any]:
    """Return a forked child's words and the signal that ended it."""
    inward, outward = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(outward, work().encode())
        os._exit(0)
    os.close(outward)
    with os.fdopen(inward) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    return {"said": said, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}


def state(pid: int) -> dict[str, Any]:
    """Return a process's part of CUDA: its threads, mapped libraries of the driver, and open devices."""
    process = Path(f"/proc/{pid}")
    mapped = {line.rpartition("/")[2] for line in (process / "maps").read_text().splitlines()}
    opened = [str(link.readlink()) for link in (process / "fd").iterdir()]
    return {
        "threads": len(list((process / "task").iterdir())),
        "mapped": sorted(name for name in mapped if name.startswith(("libcuda", "libnvidia"))),
        "opened": [path for path in opened if path.startswith("/dev/nvidia")],
        "core": any(name.startswith("libnvinfer_lean") for name in mapped),
    }


def registry() -> dict[str, Any]:
    """Return the answer of NVIDIA's own plugin registry to the plugin in Python: the versions that it holds."""
    from harness.agent.engines.tensorrt import api, plugins

    api.load(ENGINE)

    def work() -> str:
        # Past the question whether there is a network to add it to: the lean core does not build.
        plugins._register_python()
        held = api.trt.get_plugin_registry()
        return ",".join(
            version for version in ("1", "2") if held.get_creator("CompatIdentity", version, "") is not None
        )

    return in_child(work)


def main() -> dict[str, Any]:
    """Run everything and return the messages."""
    agent = Agent()
    try:
        report = {
            "hello": agent.hello,
            "loaded": state(agent.pid),
            "preflight": [agent.run("preflight"), agent.run("preflight")],
            "plans": {name: [agent.run("run", plan=plan) for _ in range(2)] for name, plan in PLANS.items()},
            "after": state(agent.pid),
        }
    finally:
        agent.close()
    return {**report, "bare runtime": bare_runtime(), "registry": registry()}


if __name__ == "__main__":
    json.dump(main(), sys.stdout, indent=1)
