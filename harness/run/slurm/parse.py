"""What Slurm's commands print, read; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: States, as squeue's %T has them, of a job that will not run any more.
_ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
#: Reasons for which a job waits that no waiting mends.
_NEVER = frozenset(
    {
        "AccountNotAllowed",
        "BadConstraints",
        "InvalidAccount",
        "InvalidQOS",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "QOSNotAllowed",
    }
)
#: What a job waits for that could not be started on its node, until somebody lets it go.
_NOT_LAUNCHED = re.compile(r"launch.failed.requeued.held", re.IGNORECASE)
#: Words by which the clients say that nobody answers, and not that they are refused.
_SILENT = re.compile(
    r"unable to contact slurm controller|socket timed out|connection refused|munge|protocol authentication error"
    r"|zero bytes were transmitted|unable to (process|establish) configuration|could not establish a configuration"
    r"|slurm\.conf|unexpected message received|slurm backup controller in standby",
    re.IGNORECASE,
)
#: What `sbatch --test-only` answers when no node has it, and as well when those that have it are down just now.
_NOT_AVAILABLE = re.compile(
    r"requested node configuration is not available|required partition not available"
    r"|nodes? (are|is)( currently)? (busy|not available)|required node not available",
    re.IGNORECASE,
)

#: For squeue: the job, its state, its nodes and, last because it may hold anything, the reason.
QUEUE_FORMAT = "%i|%T|%N|%r"


@dataclass(frozen=True)
class Seen:
    """A job as the queue shows it."""

    state: str
    node: str = ""
    reason: str = ""

    @property
    def ended(self) -> bool:
        """Whether it will not run any more."""
        return self.state in _ENDED

    @property
    def running(self) -> bool:
        """Whether it is on a node."""
        return self.state in ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED")

    @property
    def hopeless(self) -> bool:
        """Whether it waits for what never comes."""
        return self.state == "PENDING" and self.reason in _NEVER

    @property
    def stuck(self) -> bool:
        """Whether it was not started on its node, and waits for somebody to see to that."""
        return self.state == "PENDING" and _NOT_LAUNCHED.search(self.reason) is not None


@dataclass(frozen=True)
class End:
    """How a job ended: its state, its exit code as `code:signal`, its node and the reason that Slurm has."""

    state: str
    exit_code: str = ""
    node: str = ""
    reason: str = ""

    @property
    def code(self) -> int:
        """Return what the task itself exited with, 0 where it is not known."""
        first = self.exit_code.partition(":")[0]
        return int(first) if first.isdigit() else 0

    def sentence(self) -> str:
        """Return it in words."""
        said = [f"ended as {self.state}"]
        if self.node:
            said.append(f"on {self.node}")
        more = [f"exit code {self.exit_code}"] if self.exit_code not in ("", "0:0") else []
        more += [self.reason] if self.reason not in ("", "None", "(null)") else []
        return " ".join(said) + (f" ({', '.join(more)})" if more else "")


def parse_queue(text: str) -> dict[str, Seen]:
    """Read the lines of squeue in `QUEUE_FORMAT`, by job."""
    found = {}
    for line in text.splitlines():
        job, *rest = line.split("|", 3)
        if len(rest) == 3:  # noqa: PLR2004  (the fields of the format)
            found[job.strip()] = Seen(*(field.strip() for field in rest))
    return found


def parse_job(text: str) -> End | None:
    """Read `scontrol show job --oneliner`; None where it holds no job."""
    fields = dict(re.findall(r"(?:^|\s)(JobState|ExitCode|NodeList|Reason)=(\S*)", text))
    if "JobState" not in fields:
        return None
    node = fields.get("NodeList", "")
    return End(
        fields["JobState"],
        fields.get("ExitCode", ""),
        "" if node == "(null)" else node,
        fields.get("Reason", "").replace("_", " "),
    )


def parse_accounting(text: str) -> End | None:
    """Read the first line of `sacct --parsable2 --noheader --format=State,ExitCode,NodeList,Reason`."""
    for line in text.splitlines():
        state, *rest = line.split("|")
        # "CANCELLED by 1000" names who did it.
        if state and len(rest) == 3:  # noqa: PLR2004  (the fields of the format)
            node = "" if rest[1].startswith("None") else rest[1]
            return End(state, rest[0], node, rest[2])
    return None


def parse_architectures(text: str) -> dict[str, str]:
    """Read `scontrol show node --oneliner`: each node's architecture, for those that have ever said so."""
    nodes = (re.findall(r"(?:^|\s)(NodeName|Arch)=(\S+)", line) for line in text.splitlines())
    found = (dict(fields) for fields in nodes)
    return {fields["NodeName"]: fields["Arch"] for fields in found if len(fields) == 2}  # noqa: PLR2004  (both)


def complaint(text: str) -> str:
    """Return what a command complains of as one line, without who says so, each thing once."""
    lines = []
    for line in text.splitlines():
        said = re.sub(r"^(s[a-z]+: )?((error|fatal): )?", "", line.strip())
        said = re.sub(r"^(allocation failure|Batch job submission failed): ", "", said)
        if said and said not in lines and not said.startswith('Try "'):
            lines.append(said)
    return "; ".join(lines)


def is_silence(said: str) -> bool:
    """Tell whether a complaint is that Slurm does not answer."""
    return _SILENT.search(said) is not None


def may_be_later(said: str) -> bool:
    """Tell whether what a test refuses may be had once a node is up, which the submission itself knows."""
    return _NOT_AVAILABLE.search(said) is not None
