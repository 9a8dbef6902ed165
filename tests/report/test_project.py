"""Where the project is at home is said once, in pyproject.toml; where it is not said no page has a dead link."""

from __future__ import annotations

import re
from email.message import Message
from importlib.metadata import PackageNotFoundError

import pytest

from harness.report import project
from harness.report.page.data import unpacked
from harness.report.page.html import render
from harness.report.project import addresses
from tests.report import factory

pytestmark = pytest.mark.unit

HOME, ISSUES = "https://a.example/p", "https://a.example/p/issues"


def named(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    message = Message()
    for url in urls:
        message["Project-URL"] = url
    monkeypatch.setattr(project, "metadata", lambda _: message)


def test_the_addresses_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the labels that packages use; what is no https address is none, nor is a package that is not installed."""
    named(monkeypatch, f"Repository, {HOME}", f"Bug Tracker, {ISSUES}")
    assert addresses() == {"home": HOME, "issues": ISSUES}
    named(monkeypatch, "Repository, git@a.example:p", "Chat, https://a.example/chat")
    assert addresses() == {"home": "", "issues": ""}

    def missing(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(project, "metadata", missing)
    assert set(addresses().values()) == {""}


def test_pages_say_where_to_send_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    results = factory.results()
    named(monkeypatch, f"Repository, {HOME}", f"Issues, {ISSUES}")
    page = render(results)
    for url in (HOME, ISSUES):
        assert f'href="{url}"' in page
    assert f'"issues":"{ISSUES}"' in unpacked(page)


def test_pages_of_no_known_project_say_to_write_to_who_published_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = factory.results()
    named(monkeypatch)
    page = render(results)
    (said,) = re.findall(r'<p id="send">(.*?)</p>', page)
    assert said.endswith("to who published it.")
    assert "<a" not in said
