"""The half-sentence that helps a user who mistyped a name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A list longer than this hides the answer instead of giving it.
_MOST_LISTED = 24


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for a near miss, else the known names, shortened where there are many."""
    names = list(known)
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold(), folded, n=1)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    if len(names) > _MOST_LISTED:
        return f"known: {', '.join(names[:_MOST_LISTED])} and {len(names) - _MOST_LISTED} more"
    return f"known: {', '.join(names)}" if names else "there are none"
