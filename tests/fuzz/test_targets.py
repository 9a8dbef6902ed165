"""Every reader keeps its promise: of what was ever found, of the corpus, and of inputs that nobody has seen."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import corpus
from tests.fuzz.mutate import KINDS, Edit, edited
from tests.fuzz.targets import TARGETS, Target

pytestmark = pytest.mark.unit

each = pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
#: Inputs of a corpus that every run reads; `make fuzz` reads all.
_MOST = 40
_NUMBER = st.integers(0, (1 << 20) - 1)
_EDITS = st.lists(st.builds(Edit, st.sampled_from(KINDS), _NUMBER, _NUMBER), min_size=1, max_size=4)


def begun(target: Target) -> list[bytes]:
    """Return inputs from all over a target's corpus, or its seeds where it has none yet."""
    found = corpus.kept(target.name) or target.every_seed()
    return found[:: -(-len(found) // _MOST)]


@pytest.mark.parametrize(
    ("target", "name"),
    [(target, path.name) for target in TARGETS.values() for path in corpus.findings(target.name)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_what_was_found_stays_mended(target: Target, name: str) -> None:
    """Each input that a campaign found is read as its reader promises."""
    target.run((corpus.FINDINGS / target.name / name).read_bytes())


@each
@pytest.mark.fault("files", "bytes of any kind, where a reader is given them", "what the reader promises")
def test_what_is_known_and_what_is_near_it_is_read(target: Target) -> None:
    """The corpus, and what hypothesis makes of it, the same each time: what is new is for `make fuzz` to find."""
    known = begun(target)
    for data in known:
        target.run(data)

    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(known), _EDITS)
    def near(data: bytes, edits: list[Edit]) -> None:
        target.run(edited(data, edits))

    near()
