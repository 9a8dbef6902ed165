"""The tests themselves: what the machine lacks is a skip with its reason, and how they were started does not matter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]


def browser_test(**environment: str) -> str:
    """Run a test that needs a browser, and return what pytest says of it."""
    given = {name: value for name, value in os.environ.items() if name != needs.REQUIRE}
    words = ["-q", "-p", "no:cacheprovider", "tests/report/test_past_page.py", "--maxfail=1"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-m", "browser"],
        cwd=ROOT,
        env=given | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_a_driver_that_does_not_start_is_a_skip_with_its_own_words(tmp_path: Path) -> None:
    """As on a machine that lacks a library of the program that Playwright brings with it."""
    pytest.importorskip("playwright")
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho 'no library called libsomething' >&2\nexit 127\n")
    node.chmod(0o755)
    said = browser_test(PLAYWRIGHT_NODEJS_PATH=str(node))
    assert "Playwright's driver does not start: no library called libsomething" in said
    assert "error" not in said
    assert "failed" not in said


def test_a_browser_that_does_not_start_is_a_skip_with_its_reason() -> None:
    needs.chromium()
    said = browser_test(TRT_COMPAT_CHROMIUM="/bin/false")
    assert "/bin/false does not start: " in said
    assert "failed" not in said


def test_an_interrupt_that_was_ignored_is_not_handed_down_to_programs() -> None:
    """A program that is started in the background ignores SIGINT, and so would all that tests interrupt."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import tests.conftest; "
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
