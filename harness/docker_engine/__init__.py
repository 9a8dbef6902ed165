"""The only room that imports the Docker SDK: daemon, images, containers as streams, and the reaper.

It is a folder of its own, and not part of `harness.transport`, because `harness.provision` needs the same
daemon to pull and build. Nothing of the SDK shows in what it hands out.
"""

from harness.docker_engine.client import Daemon, daemon
from harness.docker_engine.images import Image, ImageRefused, build_image, find_image, pull_image, run_once
from harness.docker_engine.options import ALL_GPUS, Options, command_line
from harness.docker_engine.reaper import PROJECT_LABEL, reap
from harness.docker_engine.stream import DockerTransport

__all__ = [
    "ALL_GPUS",
    "PROJECT_LABEL",
    "Daemon",
    "DockerTransport",
    "Image",
    "ImageRefused",
    "Options",
    "build_image",
    "command_line",
    "daemon",
    "find_image",
    "pull_image",
    "reap",
    "run_once",
]
