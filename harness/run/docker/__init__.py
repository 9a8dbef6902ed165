"""The only room that runs the program `docker`: daemon, images, containers as streams, and the reaper.

It is a room of its own, and no part of `harness.run.transport`, because `harness.run.provision` needs the same
daemon to pull and build.
"""

from harness.run.docker.client import Daemon, address, daemon, met, program
from harness.run.docker.container import ALL_GPUS, UNFILTERED, DockerTransport, Options, command_line, limits
from harness.run.docker.images import Image, ImageRefused, build_image, find_image, pull_image
from harness.run.docker.reaper import PROJECT_LABEL, reap

__all__ = [
    "ALL_GPUS",
    "PROJECT_LABEL",
    "UNFILTERED",
    "Daemon",
    "DockerTransport",
    "Image",
    "ImageRefused",
    "Options",
    "address",
    "build_image",
    "command_line",
    "daemon",
    "find_image",
    "limits",
    "met",
    "program",
    "pull_image",
    "reap",
]
