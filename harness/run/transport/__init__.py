"""A duplex byte stream to an agent, whatever is at its other end."""

from harness.run.transport.process import AgentGoneError, ExitStatus, ProcessTransport, Transport

__all__ = ["AgentGoneError", "ExitStatus", "ProcessTransport", "Transport"]
