"""The only room that imports the Docker SDK: daemon, images, containers as streams, and the reaper.

It is a folder of its own, and not part of `harness.run.transport`, because `harness.run.provision` needs the same
daemon to pull and build. Nothing of the SDK shows in what it hands out.
"""

from harness.run.docker.absence import met, wait_for
from harness.run.docker.client import Daemon, address, daemon
from harness.run.docker.container import DockerTransport
from harness.run.docker.images import Image, ImageRefused, build_image, find_image, run_once
from harness.run.docker.options import ALL_GPUS, UNFILTERED, Options, command_line, limits, program
from harness.run.docker.pull import Progress, PullBroke, pull_image
from harness.run.docker.reaper import PROJECT_LABEL, reap
from harness.run.docker.registry import Layers, layers_of
from harness.run.docker.ssh import run_there

__all__ = [
    "ALL_GPUS",
    "PROJECT_LABEL",
    "UNFILTERED",
    "Daemon",
    "DockerTransport",
    "Image",
    "ImageRefused",
    "Layers",
    "Options",
    "Progress",
    "PullBroke",
    "address",
    "build_image",
    "command_line",
    "daemon",
    "find_image",
    "layers_of",
    "limits",
    "met",
    "program",
    "pull_image",
    "reap",
    "run_once",
    "run_there",
    "wait_for",
]
