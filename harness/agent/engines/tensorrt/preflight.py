"""What every cell needs, tried once before the first: the GPU, then each thing the library makes without a model."""

from typing import Dict

from harness.agent import gpu
from harness.agent.engines import Emit, phase
from harness.agent.engines.tensorrt import api, build
from harness.agent.protocol import Message


def preflight(job: Message, _parts: Dict[str, bytes], emit: Emit) -> None:
    """Report the GPU as a fact and make a builder, a network, a parser, a config and a runtime; raises MachineFault.

    A job of its own, because a CUDA context does not survive a fork, and because some of these end the process where
    something is wrong: the phase that was begun says which.
    """
    with phase(emit, "the GPU"):
        usable = gpu.check(emit, needed=job["needs_gpu"])
    logger = api.make_logger(emit)
    # NVIDIA's lean runtime has no builder.
    if api.has("Builder"):
        with phase(emit, "builder, network, parser and config"):
            builder, network, parser = build.make_parser(logger, "graph")
            config = api.made(logger, "create_builder_config", builder.create_builder_config)
        del config, parser, network, builder
    # Without a GPU nothing is loaded.
    if usable:
        with phase(emit, "the runtime"):
            runtime = api.make_runtime(logger)
            # The first use of a null one ends this process here, and not that of a cell.
            getattr(runtime, "max_threads")  # noqa: B009
