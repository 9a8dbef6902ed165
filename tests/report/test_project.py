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
from harness.report.site import site_files
from tests.report import factory

pytestmark = pytest.mark.unit

HOME, ISSUES, SITE = "https://a.example/p", "https://a.example/p/issues", "https://a.example/site/"


def named(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    message = Message()
    for url in urls:
        message["Project-URL"] = url
    monkeypatch.setattr(project, "metadata", lambda _: message)


def test_the_addresses_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the labels that packages use; what is no https address is none, nor is a package that is not installed."""
    named(monkeypatch, f"Repository, {HOME}", f"Bug Tracker, {ISSUES}", f"Site, {SITE}")
    assert addresses() == {"home": HOME, "issues": ISSUES, "site": SITE}
    named(monkeypatch, "Repository, git@a.example:p", "Chat, https://a.example/chat")
    assert addresses() == {"home": "", "issues": "", "site": ""}

    def missing(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(project, "metadata", missing)
    assert set(addresses().values()) == {""}


def test_pages_say_where_to_send_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    results = factory.results()
    named(monkeypatch, f"Repository, {HOME}", f"Issues, {ISSUES}", f"Site, {SITE}")
    page, site = render(results), site_files(results)
    for url in (HOME, ISSUES, SITE):
        assert f'href="{url}"' in page
    assert f'"issues":"{ISSUES}"' in unpacked(page)
    assert f'<a href="{HOME}">the project</a>' in site["contributors/index.html"].decode()
    assert f'<a href="{ISSUES}">Report an error</a>' in site["index.html"].decode()


def test_pages_of_no_known_project_say_to_write_to_who_published_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = factory.results()
    named(monkeypatch)
    page, site = render(results), site_files(results)
    (said,) = re.findall(r'<p id="send">(.*?)</p>', page)
    assert said.endswith("to who published it.")
    assert "<a" not in said
    assert "send it to who published these pages" in site["contributors/index.html"].decode()
    assert "The project</a>" not in site["index.html"].decode()
