"""The two errors that reach a user as one sentence and an exit code, and the sentence for any other exception."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

#: Errors of a machine short of something: no mistake of the user, and no fault that a traceback explains.
SHORT_OF = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE})
_TOP = Path(__file__).resolve().parents[1]


class HandledError(Exception):
    """A mistake that the user can correct: printed as one sentence, without traceback, exit code 2."""


class InfraError(Exception):
    """The machinery failed (daemon, pull, agent, driver), not the engine under test: exit code 3."""


def described(error: BaseException) -> str:
    """Return an exception on one line: one of the two above in its own words, any other with its type and place."""
    said = " ".join(str(error).split())[:600]
    if isinstance(error, HandledError | InfraError):
        return said
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}{f': {said}' if said else ''}{_place(frames[-1]) if frames else ''}"


def _place(frame: traceback.FrameSummary) -> str:
    path = Path(frame.filename)
    shown = path.relative_to(_TOP) if path.is_relative_to(_TOP) else path.name
    return f" ({shown}:{frame.lineno})"
