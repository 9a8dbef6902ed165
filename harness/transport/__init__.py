"""A duplex byte stream to an agent, in a container or a virtual environment: `start` gives a `Transport`."""

from harness.transport.api import AgentGoneError, ExitStatus, Transport
from harness.transport.start import docker_command_line, start

__all__ = ["AgentGoneError", "ExitStatus", "Transport", "docker_command_line", "start"]
