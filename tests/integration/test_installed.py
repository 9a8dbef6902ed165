"""A company's repository imitated: the wheel in an environment of its own, an empty home, a user who is not root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import needs
from tests.waiting import HANGS

pytestmark = [pytest.mark.integration, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
#: As root a test could write everywhere, and nothing would tell: the numbers of `nobody`.
_NOBODY = 65534
#: Variables that a shell of another user lacks.
_OURS = ("HOME", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")


@dataclass(frozen=True)
class Company:
    """A user with a home, a repository, a folder for temporary files, and the package installed elsewhere."""

    top: Path
    environment: Path
    switch: Sequence[str]

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command of the installed package in the repository; return what it said."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in _OURS
            and not name.startswith(("PYTEST", "COV", "XDG", "PYENV", "TRT_COMPAT", "PYTHON"))
        }
        own = {"HOME": self.top / "home", "TMPDIR": self.top / "tmp"}
        path = f"{self.environment / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        done = subprocess.run(
            [*self.switch, self.environment / "bin" / words[0], *words[1:]],
            cwd=self.top / "repository",
            env=kept | {name: str(value) for name, value in own.items()} | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def company(wheel: Path) -> Iterator[Company]:
    """A machine with nothing but Python; its user cannot write to where the package is."""
    # pytest's own folders are for one user alone.
    with tempfile.TemporaryDirectory(prefix="trt-compat-test-") as name:
        top = Path(name)
        top.chmod(0o755)
        switch: list[str] = []
        if os.geteuid() == 0:
            setpriv = needs.program("setpriv")
            switch = [setpriv, f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--"]
        shutil.copy(wheel, top)
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([_python(switch), "-m", "venv", top / "environment"], check=True)
        subprocess.run(
            [
                top / "environment/bin/python",
                *pip,
                "--constraint",
                ROOT / "constraints.txt",
                top / wheel.name,
            ],
            check=True,
        )
        for own in ("home", "repository", "tmp"):
            (top / own).mkdir()
            if switch:
                os.chown(top / own, _NOBODY, _NOBODY)
        yield Company(top, top / "environment", switch)


def _python(switch: Sequence[str]) -> str:
    """Return a Python that the user can start: this one may lie in the home of another."""
    ask = "import sys, ensurepip; assert sys.version_info >= (3, 10)"
    own = sys._base_executable  # type: ignore[attr-defined]
    for python in (own, "/usr/local/bin/python3", "/usr/bin/python3"):
        # By a shell: what setpriv itself starts is found with the rights of root.
        words = [*switch, "sh", "-c", 'exec "$0" -c "$1"', str(python), ask]
        if not subprocess.run(words, capture_output=True, check=False, cwd="/").returncode:
            return str(python)
    pytest.skip("no Python of 3.10 or newer that another user could start")


def test_from_nothing_to_a_report(company: Company) -> None:
    """The shipped cases, then one's own, by both front doors; files are written only to their places."""
    said = company.run("trt-compat", "run", "-k", "mish.fp32", "--target", "ort131", "--via", "venv")
    assert "no matrix.yaml and" in said
    assert "1 ok" in said
    assert "trt-compat verify" not in company.run("trt-compat", "verify")
    shutil.rmtree(company.top / "repository" / "reports")

    company.run("trt-compat", "init")
    assert "example.int8-rtx17" in company.run("trt-compat", "list")
    assert "1 as expected" in company.run("trt-compat", "run", "-k", "ort131", "--via", "venv")
    assert "1 passed" in company.run("pytest", "-k", "ort131", "--via", "venv", "-n", "2")
    company.run("trt-compat", "report")
    company.run("trt-compat", "verify")
    repository = company.top / "repository"
    results = json.loads((repository / "reports" / "results.json").read_text())
    assert [(cell["id"], cell["class"]) for cell in results["cells"] if cell["class"] != "not_run"] == [
        ("example.int8-ort131", "ok")
    ]
    written = {path.name for path in repository.iterdir()} - {".pytest_cache", "__pycache__"}
    assert written == {"matrix.yaml", "cases", "conftest.py", ".github", ".gitignore", "reports"}
    assert {path.name for path in (company.top / "home").iterdir()} <= {".cache"}
    # The folder that pytest itself keeps for tests.
    assert [
        path.name for path in (company.top / "tmp").iterdir() if not path.name.startswith("pytest-of-")
    ] == []
