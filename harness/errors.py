"""The two errors that reach a user as one sentence and an exit code."""

from __future__ import annotations


class HandledError(Exception):
    """A mistake the user can mend: printed as one sentence, without traceback, exit code 2."""


class InfraError(Exception):
    """The machinery failed (daemon, pull, agent, driver), not the engine under test: exit code 3."""
