"""The only room that imports the Docker SDK: daemon, images, containers as streams, and the reaper.

It is a folder of its own, and not part of `harness.run.transport`, because `harness.run.provision` needs the same
daemon to pull and build. Nothing of the SDK shows in what it hands out.
"""

from harness.run.docker.client import Daemon, daemon
from harness.run.docker.images import Image, ImageRefused, build_image, find_image, pull_image, run_once
from harness.run.docker.options import ALL_GPUS, Options, command_line
from harness.run.docker.reaper import PROJECT_LABEL, reap
from harness.run.docker.stream import DockerTransport

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
