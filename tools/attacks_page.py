"""docs/attacks.md: what a hostile model is tried at, and what comes of it in a container and outside of one."""

from __future__ import annotations

from tests.agent.attack_table import ATTACKS

_HEAD = """\
# Attacks

<!-- Written by `make docs` from tests/agent/attack_table.py; do not edit. -->

What a process that a hostile model has taken over is tried at, in a real container and in a real virtual environment,
by `tests/agent/test_attacks.py`; `make faults` runs it and prints what came of each. After each try the agent serves
the next job, and in a container that job finds nothing of the one before. What this means is in
[SECURITY.md](../SECURITY.md).

- *refused*: the kernel refuses it. *no effect*: it is allowed, and nothing comes of it. *its own crash*: the job ends,
  and its cell is recorded as crashed. *gone*: what it made is removed with it. *a new agent*: the next cell gets one.
- *not promised*: with your rights it may succeed. It is tried all the same, as a user without rights, where a success
  leaves nothing behind; what would harm the machine is not tried.

Where emulation runs a container of another architecture, all of it is tried too but for the signals and the processes
without end, with the same outcomes. A signal can stop the emulator there, and with it the agent: its cell is then tried
with a new one.

"""
_GROUPS = {
    "forge": "Results of another cell",
    "agent": "The agent: ending, stopping, reading, changing it",
    "take": "More than is due",
    "leave": "Something left behind",
    "out": "Getting out",
}


def attacks_page() -> str:
    """Return the text of docs/attacks.md."""
    parts = [_HEAD]
    for group, title in _GROUPS.items():
        rows = [
            f"| {each.tried} | {each.container} | {each.venv} |" for each in ATTACKS if each.group == group
        ]
        parts.append(
            f"## {title}\n\n| tried | in a container | in a virtual environment |\n| --- | --- | --- |\n"
        )
        parts.append("\n".join(rows) + "\n\n")
    return "".join(parts).rstrip("\n") + "\n"
