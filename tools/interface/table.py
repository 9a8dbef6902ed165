"""From what each version offers to one table of lives: the versions between which each name was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fact:
    """One name of one version: the arguments of a call, what it gives, a class's bases, what is said of its end."""

    arguments: tuple[str, ...] = ()
    returns: str = ""
    bases: tuple[str, ...] = ()
    note: str = ""


Listing = dict[str, Fact]


@dataclass(frozen=True)
class Life:
    """The version that first has a name and the first without it; "" for the ends of the table."""

    first: str
    gone: str


@dataclass
class Row:
    """A name with all its lives, and the last that is known of it."""

    lives: list[Life] = field(default_factory=list)
    fact: Fact = field(default_factory=Fact)
    #: Arguments that came or went while the call stayed.
    arguments: dict[str, list[Life]] = field(default_factory=dict)


def lives(versions: Sequence[str], there: Sequence[bool]) -> list[Life]:
    """Return the lives of a name that is there in some of the versions."""
    found: list[Life] = []
    for at, (version, now) in enumerate(zip(versions, there, strict=True)):
        before = at > 0 and there[at - 1]
        if now and not before:
            found.append(Life(version if at else "", ""))
        elif before and not now:
            found[-1] = Life(found[-1].first, version)
    return found


def rows(listings: Mapping[str, Listing]) -> dict[str, Row]:
    """Return a row for each name of the listings, which are in the order of their versions."""
    versions = [*listings]
    found: dict[str, Row] = {}
    for name in dict.fromkeys(name for listing in listings.values() for name in listing):
        facts = [_fact(listings[version], name) for version in versions]
        has = [fact for fact in facts if fact]
        note = next((fact.note for fact in reversed(has) if fact.note), "")
        returns = next((fact.returns for fact in reversed(has) if fact.returns), "")
        row = Row(
            lives(versions, [fact is not None for fact in facts]), Fact((), returns, has[-1].bases, note)
        )
        here = [version for version, fact in zip(versions, facts, strict=True) if fact]
        for argument in dict.fromkeys(each for fact in has for each in fact.arguments):
            known = lives(here, [argument in fact.arguments for fact in has])
            if known != [Life("", "")] and not _anonymous(has):
                row.arguments[argument] = known
        found[name] = row
    return found


def _fact(listing: Listing, name: str) -> Fact | None:
    """Return what a version has of a name, which a class may have handed to a base since, or an alias to its class."""
    owner, _, bare = name.rpartition(".")
    seen: list[str] = [owner]
    for each in seen:
        if found := listing.get(f"{each}.{bare}" if each else bare):
            return found
        seen += [base for base in (listing[each].bases if each in listing else ()) if base not in seen]
    return None


def _anonymous(facts: Sequence[Fact]) -> bool:
    """Tell whether a version gives its arguments no names, so that nothing is to be said of them."""
    return any(each.startswith("arg") and each[3:].isdigit() for fact in facts for each in fact.arguments)
