"""What a hostile model's process is tried at, and what is to come of it; docs/attacks.md is written from this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What is to come of a try in a container: the kernel refuses it; it is allowed and without effect; the job ends as its
#: own crash; what it left is gone when it has ended; the next job gets a new agent.
Held = Literal["refused", "no effect", "its own crash", "gone", "a new agent"]
#: In a virtual environment it may be that nothing is promised; what would harm this machine is not tried there.
Venv = Literal["refused", "no effect", "its own crash", "not promised", "not promised, not tried"]


@dataclass(frozen=True)
class Attack:
    """One way of harm: what the job is told to `do`, and what is to come of that."""

    do: str
    group: Literal["forge", "agent", "take", "leave", "out"]
    tried: str
    container: Held = "refused"
    venv: Venv = "not promised"


ATTACKS = (
    Attack("forge_others", "forge", "ends and greetings in other jobs' names", "no effect", "no effect"),
    Attack("forge_end", "forge", "its own end, and results for the next", "its own crash", "its own crash"),
    Attack("forge_native", "forge", "what only the agent says of a job", "its own crash", "its own crash"),
    Attack("forge_half", "forge", "half a frame, left for the next job", "its own crash", "its own crash"),
    Attack("forge_huge", "forge", "a frame announced as endless", "its own crash", "its own crash"),
    Attack("forge_everywhere", "forge", "its end, into every descriptor it has", "no effect", "no effect"),
    Attack(
        "leave_writer", "forge", "a process that writes into the pipes of later jobs", "gone", "no effect"
    ),
    Attack("leave_modules", "forge", "modules in the folder that the agent runs in", "gone", "no effect"),
    Attack("code_of_agent", "forge", "writes, shrinks or unseals the agent's code", venv="refused"),
    Attack(
        "signals", "agent", "every signal, SIGKILL and SIGSTOP too", "no effect", "not promised, not tried"
    ),
    Attack("kill_all", "agent", "kills all processes that it may", "no effect", "not promised, not tried"),
    Attack("memory_of_agent", "agent", "opens its memory, environment and descriptors", venv="refused"),
    Attack("trace_agent", "agent", "attaches to it as a debugger", venv="refused"),
    Attack("call ptrace process_vm_readv process_vm_writev", "agent", "the system calls of debuggers"),
    Attack("call pidfd_getfd kcmp process_madvise", "agent", "takes descriptors of it, compares, advises"),
    Attack("limit_agent", "agent", "the call that sets its limits"),
    Attack("slow_agent", "agent", "its priority"),
    Attack("pin_agent", "agent", "its processors and its turns", "a new agent", "not promised, not tried"),
    Attack("big_file", "take", "a file of 4 GiB"),
    Attack("many_files", "take", "1100 open files"),
    Attack("raise_limits", "take", "higher limits for itself"),
    Attack("shared_memory", "take", "80 MiB of /dev/shm"),
    Attack("fork", "take", "1100 processes", venv="not promised, not tried"),
    Attack("descend", "take", "a chain of 200 processes, each in a session of its own", "gone", "no effect"),
    Attack("call memfd_secret io_setup", "take", "memory and queues that nobody counts"),
    Attack(
        "leave_processes",
        "leave",
        "stopped and deaf processes outside group, session and parent",
        "gone",
        "no effect",
    ),
    Attack("leave_socket", "leave", "a Unix socket without a file, with its process", "gone", "no effect"),
    Attack("leave_ipc", "leave", "System V objects and a POSIX queue", "gone"),
    Attack("leave_names", "leave", "files with hidden, longest and unreadable names", "gone"),
    Attack("leave_kinds", "leave", "a pipe, a socket, a link and a closed folder", "gone"),
    Attack("leave_link", "leave", "a link to /etc where the agent removes the job's folder", "gone"),
    Attack("leave_fixed", "leave", "a file that none may remove", venv="refused"),
    Attack("call keyctl add_key request_key", "leave", "keys in the kernel"),
    Attack("socket vsock", "out", "sockets to the machine that hosts this one (AF_VSOCK)"),
    Attack("socket packet netlink alg bluetooth can xdp", "out", "sockets of six other kinds"),
    Attack("raw", "out", "raw sockets", venv="refused"),
    Attack("network", "out", "an interface beyond loopback"),
    Attack("call io_uring_setup io_uring_enter io_uring_register", "out", "io_uring"),
    Attack("call bpf perf_event_open", "out", "programs in the kernel and its counters"),
    Attack("call userfaultfd", "out", "page faults of the kernel to be answered by itself"),
    Attack("namespace", "out", "a user namespace, in which it is root"),
    Attack("call unshare setns clone3", "out", "namespaces by three other calls"),
    Attack("call mount umount2 pivot_root chroot", "out", "other mounts, another root"),
    Attack("call open_tree move_mount fsopen mount_setattr", "out", "other mounts, by the newer calls"),
    Attack("call open_by_handle_at name_to_handle_at", "out", "files by their handle, round all folders"),
    Attack("call init_module finit_module delete_module kexec_load", "out", "modules and another kernel"),
    Attack("call reboot swapon swapoff acct quotactl sethostname", "out", "the machine's state"),
    Attack("call settimeofday clock_settime adjtimex", "out", "the machine's clock"),
    Attack("call iopl ioperm modify_ldt", "out", "ports and segments of the processor"),
    Attack("call splice tee vmsplice", "out", "pages of files within pipes"),
    Attack("call mbind migrate_pages move_pages", "out", "where pages of processes lie"),
    Attack("call syslog fanotify_init", "out", "the kernel's log, events of all files"),
    Attack("call seccomp", "out", "the filter itself"),
    Attack("foreign_calls", "out", "system calls as a 32-bit program makes them"),
    Attack("personality", "out", "fixed addresses"),
    Attack("root", "out", "root, capabilities, programs that are root's"),
    Attack("devices", "out", "devices beyond /dev/null and its like"),
    Attack("new_device", "out", "a device file of memory or of a disk", venv="refused"),
    Attack("write", "out", "a file in any folder but /tmp"),
    Attack("settings", "out", "what changes the machine, in /proc and /sys", venv="refused"),
    Attack("secrets", "out", "what is root's or the kernel's"),
    Attack("daemon", "out", "Docker's and containerd's sockets"),
    Attack("addresses", "out", "where the kernel's functions are"),
    Attack("others", "out", "processes that are not its own"),
)
