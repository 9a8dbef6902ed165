"""`decode`: dataclasses from JSON by their hints; test_outcome.py and test_results.py hold it to real ones."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.record.from_json import decode, fields_of
from harness.words import Precision

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Toy:
    pairs: tuple[tuple[str, Precision], ...]
    by_name: dict[str, Precision] = field(default_factory=dict)
    word: Precision | None = None
    size: float = 0.0
    anything: Any = None


@pytest.mark.parametrize("data", [{"pairs": [["a", "int8", "b"]]}, {"pairs": [], "size": 10**400}])
def test_a_pair_that_is_none_and_a_number_beyond_all_are_type_errors(data: Any) -> None:
    with pytest.raises(TypeError, match=r"^(pairs|size|Expected)"):
        decode(Toy, data)


def test_fields_hold_defaults_that_the_data_lacks() -> None:
    """For a record of an older harness as for one made today."""
    assert fields_of(decode(Toy, {"pairs": []})) == fields_of(Toy(pairs=()))
    assert list(fields_of(Toy(pairs=()))) == ["pairs", "by_name", "word", "size", "anything"]


#: Classes that were never read before, each by four threads at once.
_TOGETHER = """
import sys, threading
from dataclasses import make_dataclass
from harness.record.from_json import decode

sys.setswitchinterval(1e-6)
gate = threading.Barrier(4)


def read(kind):
    gate.wait()
    decode(kind, {})


for number in range(150):
    inner = make_dataclass("Inner", [(f"i{n}", int, n) for n in range(20)])
    outer = make_dataclass("Outer", [(f"o{n}", inner | None, None) for n in range(20)])
    threads = [threading.Thread(target=read, args=(outer,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_read_a_class_for_the_first_time_at_once() -> None:
    """A run of several workers died of SIGSEGV."""
    done = subprocess.run([sys.executable, "-c", _TOGETHER], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
