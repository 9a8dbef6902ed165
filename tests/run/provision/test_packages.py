"""uv is found whoever asks first, keeps to the cache that was chosen, and its failures are told from its answers."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.matrix import load_matrix
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.run.provision import packages
from harness.run.provision.cache import CACHE_VARIABLE
from harness.run.provision.model import Unreachable
from harness.run.target import TargetRunner
from tests import needs
from tests.run.bench import cell
from tests.run.provision.factory import target

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]

#: Eight threads of a fresh process ask at once: uv's own look-up then finds a `sysconfig` half made.
HAMMER = """
import sys, threading
from harness.run.provision.packages import _uv_program
sys.setswitchinterval(1e-6)
start, found = threading.Barrier(8), []
def ask():
    start.wait()
    try:
        found.append(_uv_program())
    except BaseException as error:
        found.append(repr(error))
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("\\n".join(sorted(set(found))))
"""


def test_threads_that_ask_at_once_all_find_uv() -> None:
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", HAMMER], capture_output=True, text=True, check=True)
        assert Path(done.stdout.strip()).name == "uv", done.stdout


def test_uv_keeps_its_own_in_the_cache_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", CACHE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    assert "UV_CACHE_DIR" not in packages._uv_environment()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "chosen"))
    chosen = packages._uv_environment()
    assert chosen["UV_CACHE_DIR"] == str(tmp_path / "chosen" / "uv")
    assert chosen["UV_PYTHON_INSTALL_DIR"] == str(tmp_path / "chosen" / "python")
    monkeypatch.setenv("UV_CACHE_DIR", "/elsewhere")
    assert packages._uv_environment()["UV_CACHE_DIR"] == "/elsewhere"


def test_a_home_that_cannot_be_written_is_no_trouble_where_a_cache_was_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs.network()
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    python, pins = packages.venv(target())
    assert python.exists()
    assert pins == ("packaging==24.1",)
    assert (tmp_path / "uv").is_dir()


@pytest.mark.parametrize("name", ["rtx14", "rtx17", "rtx17-arm64", "ort131"])
def test_an_image_has_its_packages_without_a_cache(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each package is to be had for the target's platform; uv resolves and fetches none but sources."""
    needs.network()
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    chosen = load_matrix(ROOT / "matrix.yaml").target(name)
    packages._uv(chosen, [*packages.site_command(chosen, str(tmp_path / "site")), "--dry-run"])


@pytest.fixture
def dead_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Point uv at a port where nobody listens, with nothing in its cache."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{port}/simple")
    monkeypatch.setenv("UV_FIND_LINKS", "")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")


@pytest.mark.usefixtures("dead_index")
def test_an_index_that_does_not_answer_is_infrastructure() -> None:
    # The Python of these tests is here; another would have to be downloaded first.
    toy = target(python=f"{sys.version_info[0]}.{sys.version_info[1]}")
    with pytest.raises(Unreachable, match=r"needs packaging==24\.1, which cannot be installed: .*[Cc]onnect"):
        packages.venv(toy)
    outcome = run(TargetRunner(toy, via="venv", run_id="bench"), cell("echo", toy))
    assert outcome.state == "infra_error"
    assert "cannot be installed" in outcome.reason


def run(runner: TargetRunner, of: Cell) -> Outcome:
    outcome, _ = runner.run(of)
    runner.close()
    return outcome


def emptied(root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()


def made_a_file(root: Path) -> None:
    shutil.rmtree(root)
    root.write_text("not a folder")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "the list of pins gone": lambda root: (root / "packages.json").unlink(),
    "the list of pins no JSON": lambda root: (root / "packages.json").write_text("{"),
    "the list of pins another thing": lambda root: (root / "packages.json").write_text('"pins"'),
    "empty": emptied,
    "a file": made_a_file,
    "without its Python": lambda root: (root / "bin" / "python").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_environment_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
) -> None:
    made: list[object] = []

    def make(_target: object, partial: Path) -> None:
        made.append(partial)
        (partial / "bin").mkdir(parents=True)
        (partial / "bin" / "python").touch()
        (partial / "packages.json").write_text(json.dumps(["packaging==24.1"]))

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(packages, "_make_venv", make)
    toy = target()
    for _ in range(2):
        assert packages.venv(toy)[1] == ("packaging==24.1",)
    assert len(made) == 1
    DAMAGE[damage](packages.venv_folder(toy))
    for _ in range(2):
        python, pins = packages.venv(toy)
        assert (python.exists(), pins, len(made)) == (True, ("packaging==24.1",), 2)
