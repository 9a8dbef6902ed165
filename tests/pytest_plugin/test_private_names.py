"""What the plugin uses of pytest and execnet that is private to them: each test names what a new version has lost."""

from __future__ import annotations

import execnet
import pytest

pytestmark = pytest.mark.unit


def test_pytest_still_keeps_its_junit_file_under_xml_key() -> None:
    """`--junitxml` would name cells wrongly without it."""
    from _pytest import junitxml

    assert isinstance(getattr(junitxml, "xml_key", None), pytest.StashKey), "pytest has no junitxml.xml_key"
    assert hasattr(junitxml.LogXML, "node_reporter"), "pytest has no LogXML.node_reporter"


def test_a_report_can_still_be_given_an_id() -> None:
    """Cells would be printed with one bracket too many without it."""
    report = pytest.TestReport("matrix.yaml::a", ("", 0, ""), {}, "passed", None, "call")
    if not hasattr(report, "id"):
        pytest.skip("this pytest keeps an id as it is")
    assert hasattr(report, "_id"), "pytest's TestReport has no _id"
    from harness.pytest_plugin.reporter import _mend_id

    report.nodeid = "matrix.yaml::mish[fp32]-rtx17"
    _mend_id(report)
    assert report.nodeid == "matrix.yaml::mish[fp32]-rtx17", "pytest's id of a report is made in another way"


def test_a_worker_of_xdist_still_tells_its_process() -> None:
    """An interrupted run would leave the workers' agents to the next one without it."""
    gateway = execnet.makegateway("popen")
    try:
        io = getattr(gateway, "_io", None)
        assert io is not None, "execnet's gateway has no _io"
        assert hasattr(io, "popen"), "execnet's gateway of a process has no _io.popen"
        assert io.popen.pid > 0
    finally:
        gateway.exit()
        execnet.default_group.terminate(timeout=5)
