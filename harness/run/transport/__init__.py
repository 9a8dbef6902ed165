"""A duplex byte stream to an agent, whatever is at its other end."""

from harness.run.transport.api import AgentGoneError, ExitStatus, Transport

__all__ = ["AgentGoneError", "ExitStatus", "Transport"]
