"""The reader of pybind11 sources finds what they define, and nothing else."""

from __future__ import annotations

import pytest

from tests.contract.bindings import source_names
from tests.contract.sources import read

pytestmark = pytest.mark.unit

TEXT = """
// .def("commented_out", &IBuilder::no)
py::class_<ILogger, PyLogger> baseLogger{m, "ILogger", ILoggerDoc::descr};
py::enum_<ILogger::Severity>(baseLogger, "Severity", py::arithmetic(), SeverityDoc::descr)
    .value("ERROR", ILogger::Severity::kERROR)
    .export_values();
baseLogger
    .def(py::init<>())
    .def("log", &ILogger::log, "severity"_a, "msg"_a, ILoggerDoc::log);

py::class_<IBuilder>(m, "Builder", BuilderDoc::descr)
    .def(py::init(&nvinfer1::createInferBuilder), "logger"_a, BuilderDoc::init)
    .def("create_network", &IBuilder::createNetworkV2, "flags"_a = 0U, BuilderDoc::create_network)
    .def_property_readonly("num_DLA_cores", &IBuilder::getNbDLACores)
    .def_static("of", [](int32_t (*f)(int32_t)) { return f(1); }, "f"_a)
    .def("__del__", &utils::doNothingDel<IBuilder>);

py::bind_vector<std::vector<size_t>>(m, "NodeIndices");
m.def("init_libnvinfer_plugins", &initLibNvInferPlugins, "logger"_a, "namespace"_a);
"""


def test_names_and_arguments() -> None:
    """Classes, nested enums, members, vectors and functions are found; comments and dunder members are not."""
    found = read([TEXT])
    vector = {
        f"NodeIndices.{name}" for name in ("append", "clear", "count", "extend", "insert", "pop", "remove")
    }
    assert set(found["names"]) - vector == {
        "ILogger",
        "ILogger.log",
        "ILogger.Severity",
        "ILogger.Severity.ERROR",
        "ILogger.Severity.name",
        "ILogger.Severity.value",
        "Builder",
        "Builder.create_network",
        "Builder.num_DLA_cores",
        "Builder.of",
        "NodeIndices",
        "init_libnvinfer_plugins",
    }
    assert found["arguments"] == {
        "Builder.create_network": [["flags"]],
        "ILogger.log": [["severity", "msg"]],
    }


@pytest.mark.parametrize(
    ("version", "has", "lacks"),
    [
        ("8.5", "Builder.build_engine", "OnnxParserFlag"),
        ("9.2", "NetworkDefinitionCreationFlag.STRONGLY_TYPED", "INetworkDefinition.add_plugin_v3"),
    ],
)
def test_committed_tables(version: str, has: str, lacks: str) -> None:
    """The tables in data/ are of the releases that they are named for: both have what the next one took away."""
    table = source_names(version)
    assert table["version"].startswith(version)
    assert f"release/{version}" in table["source"]
    assert has in table["names"]
    assert "IBuilderConfig.max_workspace_size" in table["names"]
    assert lacks not in table["names"]
