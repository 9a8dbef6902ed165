"""Where the project is at home is said once, in pyproject.toml; where it is not said no page has a dead link."""

from __future__ import annotations

import json
from email.message import Message
from importlib.metadata import PackageNotFoundError

import pytest

from harness.report import page as page_module
from harness.report.page import addresses, render, unpacked
from harness.report.writer import results_json
from tests.report import factory

pytestmark = pytest.mark.unit

HOME, ISSUES = "https://a.example/p", "https://a.example/p/issues"


def named(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    message = Message()
    for url in urls:
        message["Project-URL"] = url
    monkeypatch.setattr(page_module, "metadata", lambda _: message)


def test_the_addresses_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the labels that packages use; what is no https address is none, nor is a package that is not installed."""
    named(monkeypatch, f"Repository, {HOME}", f"Bug Tracker, {ISSUES}")
    assert addresses() == {"home": HOME, "issues": ISSUES}
    named(monkeypatch, "Repository, git@a.example:p", "Chat, https://a.example/chat")
    assert addresses() == {"home": "", "issues": ""}

    def missing(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(page_module, "metadata", missing)
    assert set(addresses().values()) == {""}


def test_the_page_says_where_to_send_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, f"Repository, {HOME}", f"Issues, {ISSUES}")
    text = results_json(factory.results())
    page = unpacked(render(json.loads(text), text, {}))
    assert f'"issues": "{ISSUES}"' in page
    assert f'"home": "{HOME}"' in page
