"""A real Slurm of two nodes on this machine, in a folder of its own, with every daemon started and ended here."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.processes import alive, descendants
from tests.waiting import wait_for

#: Every interval that makes a job wait is as short as this version allows; a credential that expires late would hold a
#: job that was requeued back for as long.
_CONFIGURATION = """
ClusterName=toy
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=5
KillWait=5
MinJobAge=300
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=1,sched_interval=1,sched_min_interval=0
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=1000 \
Gres=gpu:h200:2 Feature=hopper
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=1000 Feature=l4t_r36
PartitionName=main Nodes=one,two Default=YES MaxTime=INFINITE State=UP
"""
_GPUS = "NodeName=one Name=gpu Type=h200 File=/dev/tty[0-1]\n"
NODES = ("one", "two")


@dataclass
class Cluster:
    """Two nodes: `one` has GPUs by name, `two` the feature of a Jetson; each runs two tasks of one processor."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment by which Slurm's commands talk to this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self) -> None:
        """Start authentication, controller and nodes."""
        munge = self.folder / "munge"
        munge.mkdir()
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        words = [
            f"--{name}={munge / name.partition('-')[0]}" for name in ("key-file", "log-file", "seed-file")
        ]
        self.call("munged", *words, f"--socket={munge}/socket", f"--pid-file={munge}/pid", "--num-threads=2")
        (self.folder / "state").mkdir()
        for node in NODES:
            (self.folder / f"spool-{node}").mkdir()
        text = _CONFIGURATION.format(host=socket.gethostname(), folder=self.folder, ports=_free_ports(3))
        (self.folder / "slurm.conf").write_text(text, encoding="utf-8")
        (self.folder / "gres.conf").write_text(_GPUS, encoding="utf-8")
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        assert wait_for(lambda: self.states() == dict.fromkeys(NODES, "idle")), self.log()

    def start_controller(self) -> None:
        """Start the controller, which goes on from the last one's state."""
        self.call("slurmctld")
        assert wait_for(self._answers), self.log()

    def end_controller(self) -> None:
        """End the controller; the tasks run on."""
        pid = self._pid("slurmctld.pid")
        os.kill(pid, signal.SIGTERM)
        assert wait_for(functools.partial(_gone, pid))

    def start_node(self, node: str) -> None:
        """Start a node."""
        self.call("slurmd", "-N", node)

    def kill_node(self, node: str) -> None:
        """Let a node go as in a power cut: its daemon and all that runs on it, with no word to anybody."""
        doomed = {self._pid(f"slurmd-{node}.pid"), *self.managers(node)}
        for pid in doomed.union(*map(descendants, doomed)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def managers(self, *nodes: str) -> set[int]:
        """Return the processes that tasks on these nodes, or on any, hang from: no children of the nodes' daemons."""
        ours = f"SLURM_CONF={self.folder}/slurm.conf"
        on = {f"SLURMD_NODENAME={node}" for node in nodes or NODES}
        tasks = {pid for pid in _all() if (found := _environment(pid)) & on and ours in found}
        return {parent for parent in map(_parent, tasks) if _name(parent) == "slurmstepd"}

    def states(self) -> dict[str, str]:
        """Return each node's state."""
        out = self.call("sinfo", "--noheader", "--Node", "--format=%N %T").stdout
        return dict(line.split() for line in out.splitlines())

    def queue(self) -> list[list[str]]:
        """Return job, state and node of each task that has not ended."""
        out = self.call("squeue", "--noheader", "--array", "--format=%i|%T|%N").stdout
        return [line.split("|") for line in out.splitlines()]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Call one of Slurm's programs."""
        done = subprocess.run(
            words, env=os.environ | self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done

    def log(self) -> str:
        """Return the end of the daemons' output."""
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log"))

    def end(self) -> None:
        """End every daemon, and the jobs on the nodes."""
        with contextlib.suppress(AssertionError):
            self.call("scancel", "--user=root")
            wait_for(lambda: not self.queue())
        for node in NODES:
            with contextlib.suppress(OSError, ValueError):
                self.kill_node(node)
        for name in ("slurmctld.pid", "munge/pid"):
            with contextlib.suppress(OSError, ValueError):
                pid = self._pid(name)
                os.kill(pid, signal.SIGTERM)
                assert wait_for(functools.partial(_gone, pid))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        words = ["scontrol", "ping"]
        done = subprocess.run(
            words, env=os.environ | self.environment, capture_output=True, text=True, check=False
        )
        return done.returncode == 0 and "UP" in done.stdout

    def _pid(self, name: str) -> int:
        return int((self.folder / name).read_text())


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a cluster for as long as it is needed."""
    # Not pytest's folder: the socket of munge is to be reached by everybody, and its path is to be short.
    made = Cluster(Path(tempfile.mkdtemp(prefix="slurm-")))
    made.folder.chmod(0o755)
    try:
        made.start()
        yield made
    finally:
        made.end()


def _gone(pid: int) -> bool:
    return not alive(pid)


def _free_ports(count: int) -> list[int]:
    """Return free ports."""
    with contextlib.ExitStack() as open_:
        sockets = [open_.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _environment(pid: int) -> set[str]:
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0"))
    except OSError:
        return set()


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
