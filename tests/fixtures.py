"""The types of pytest's fixtures that most tests take."""

from __future__ import annotations

import pytest

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
