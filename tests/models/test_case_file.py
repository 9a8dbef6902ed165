"""A model that is written as a case is the same model again, with its recipe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.case import Data, Profile, Recipe, Typing, Variant, load_cases
from harness.case.model import Built, serialise
from harness.errors import HandledError
from harness.models.case_file import add_case, case_name
from tests.models.test_reduce import quantised

pytestmark = pytest.mark.unit

PLAIN = Variant("own", "Conv fails to build", Built(serialise(quantised(64))))


def written(folder: Path, own: Variant = PLAIN, summary: str = "It fails.") -> Variant:
    """Return the variant of a case as a run loads it."""
    add_case(folder / "own_case.py", own, summary, "https://example.org/1")
    ((variant,),) = load_cases(folder)
    return variant


def test_model_and_recipe_come_back_as_they_were(tmp_path: Path) -> None:
    profiles = (Profile("x", (1, 4), (1, 4), (2, 4)), Profile("z", (1,), (1,), (1,)))
    recipe = Recipe(Typing.STRONG, flags=("INT8",), profiles=profiles)
    variant = written(tmp_path, replace(PLAIN, recipe=recipe))
    assert variant.model_bytes() == serialise(quantised(64))
    assert variant.recipe == recipe
    assert variant.data is None
    assert max(map(len, (tmp_path / "own_case.py").read_text().splitlines())) <= 110


@pytest.mark.parametrize("data", [Data(max_rel=0.5), Data(cosine=0.25), Data(max_rel=0.0, cosine=1.0)])
def test_how_far_outputs_may_be_off_is_written_too(tmp_path: Path, data: Data) -> None:
    variant = written(tmp_path, replace(PLAIN, data=data))
    assert variant.data is not None
    assert (variant.data.max_rel, variant.data.cosine) == (data.max_rel, data.cosine)


@pytest.mark.parametrize("suffix", [".py", ".onnx"])
def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, suffix: str) -> None:
    path = (tmp_path / "own_case").with_suffix(suffix)
    path.write_text("mine")
    with pytest.raises(HandledError, match=rf"own_case\{suffix}: cannot be written \(File exists\)"):
        written(tmp_path)
    assert path.read_text() == "mine"


def test_a_name_that_no_case_can_have_is_refused(tmp_path: Path) -> None:
    assert case_name(tmp_path / "own_case.py") == "own_case"
    for name in ("Own-Case.py", "own_case.txt"):
        with pytest.raises(HandledError, match="is no name of a case"):
            case_name(tmp_path / name)
    (tmp_path / "own_case.py").touch()
    with pytest.raises(HandledError, match="is there already"):
        case_name(tmp_path / "own_case.py")


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HandledError, match="give an https address"):
        add_case(tmp_path / "own_case.py", PLAIN, "It fails.", "example.org")
    assert not any(tmp_path.iterdir())


def test_quotes_and_backslashes_in_a_title_do_no_harm(tmp_path: Path) -> None:
    title = 'says "a\\b" and \'c\'"""{x}'
    assert written(tmp_path, replace(PLAIN, title=title), "It's \\ so.").title == title
