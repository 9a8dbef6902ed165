"""What holds for every test of the project."""

from __future__ import annotations

import os
import signal

import pytest

from harness.run.retry import VARIABLE
from tests.waiting import HANGS

# A shell that starts a program in the background without job control has it ignore SIGINT. Programs respect that, and
# so does the harness: those that tests start and interrupt would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What a test breaks stays broken: to try it again costs time.
os.environ.setdefault(VARIABLE, "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """End a test that hangs: nothing else is to be ended by a clock."""
    for item in items:
        item.add_marker(pytest.mark.timeout(HANGS))
