"""What a hostile model's process is tried at, and what is to come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What is to come of a try in a container: the kernel refuses it; it is allowed and without effect; the job ends as its
#: own crash; what it left is gone when it has ended.
Held = Literal["refused", "no effect", "its own crash", "gone"]
#: In a virtual environment it may be that nothing is promised; what would harm this machine is not tried there.
Venv = Literal["refused", "no effect", "its own crash", "not promised", "not promised, not tried"]


@dataclass(frozen=True)
class Attack:
    """One way of harm: what the job is told to `do`, and what is to come of that."""

    do: str
    tried: str
    container: Held = "refused"
    venv: Venv = "not promised"


ATTACKS = (
    # Accidents: what a faulty engine may do to its agent, to the next job and to the machine.
    Attack("forge_half", "half a frame, left for the next job", "its own crash", "its own crash"),
    Attack("forge_everywhere", "its end, into every descriptor it has", "no effect", "no effect"),
    Attack("big_file", "a file of 4 GiB"),
    Attack("many_files", "1100 open files"),
    Attack("shared_memory", "80 MiB of /dev/shm"),
    Attack("fork", "1100 processes", venv="not promised, not tried"),
    Attack("descend", "a chain of 200 processes, each in a session of its own", "gone", "no effect"),
    Attack(
        "leave_processes",
        "stopped and deaf processes outside group, session and parent",
        "gone",
        "no effect",
    ),
    Attack("leave_socket", "a Unix socket without a file, with its process", "gone", "no effect"),
    Attack("leave_ipc", "System V objects and a POSIX queue", "gone"),
    Attack("leave_names", "files with hidden, longest and unreadable names", "gone"),
    Attack("leave_kinds", "a pipe, a socket, a link and a closed folder", "gone"),
    # Harm that is meant.
    Attack("forge_others", "ends and greetings in other jobs' names", "no effect", "no effect"),
    Attack("forge_end", "its own end, and results for the next", "its own crash", "its own crash"),
    Attack("code_of_agent", "writes, shrinks or unseals the agent's code", venv="refused"),
    Attack("signals", "every signal, SIGKILL and SIGSTOP too", "no effect", "not promised, not tried"),
    Attack("memory_of_agent", "opens its memory, environment and descriptors", venv="refused"),
    Attack("trace_agent", "attaches to it as a debugger", venv="refused"),
    Attack("network", "an interface beyond loopback"),
    Attack(
        "call mount unshare setns bpf keyctl init_module reboot settimeofday",
        "system calls that no engine needs",
    ),
    Attack("root", "root, capabilities, programs that are root's"),
    Attack("write", "a file in any folder but /tmp"),
    Attack("settings", "what changes the machine, in /proc and /sys", venv="refused"),
    Attack("secrets", "what is root's or the kernel's, and Docker's socket"),
)
