"""Names the needs of a target that a machine lacks: pure, offline, and asked before anything is pulled."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import HandledError, InfraError
from harness.matrix import Needs, Target
from harness.run.docker import UNFILTERED
from harness.run.provision.host import Host, HostGpu, look_at_host
from harness.run.provision.model import Via

#: The exposure without a container.
BARE = (
    "in a virtual environment nothing keeps a model's code from your files, your network and your processes"
)
_EMULATE = "docker run --privileged --rm tonistiigi/binfmt --install {}"


def can_run(target: Target, host: Host, via: Via = "auto") -> str | None:
    """Return why `target` cannot run on `host`, as a clause that begins with "needs", or None when it can."""
    lacking = _way(target, host, via)
    if lacking:
        return lacking
    lacking = _jetson(target, host) if target.platform == "jetson" else _workstation(target, host, via)
    return f"{lacking} (on {target.host})" if lacking and target.host else lacking


def _way(target: Target, host: Host, via: Via) -> str | None:
    """Return why a target cannot take a way at all, whatever the machine has."""
    if via == "venv":
        if target.untrusted:
            return "needs Docker, as it is untrusted; leave --via venv out"
        if target.host:
            return (
                f"needs its host {target.host}, where engines run in containers alone; leave --via venv out"
            )
    if host.docker is None:
        unreached = f"needs the host that matrix.yaml names for {target.name}; {host.docker_reason}"
        return unreached if target.host else None
    if target.untrusted and not host.docker.filters:
        return f"needs confinement, as it is untrusted; {UNFILTERED}"
    return None


def _workstation(target: Target, host: Host, via: Via) -> str | None:
    lacking = _gpu(target, host, via) if target.needs.gpu else None
    return lacking or _architecture(target, host, via) or _packages(target, host, via)


def older_driver(target: Target, host: Host) -> str:
    """Return that this machine's driver is not the recommended one, as a clause; "" if it is or is not known."""
    gpus = () if host.docker_elsewhere else fitting_gpus(target, host)
    if not gpus or any(target.needs.is_recommended(gpu.driver) for gpu in gpus):
        return ""
    return f"the release notes recommend driver {target.needs.recommended}, this machine has {gpus[0].driver}"


def dealt_gpus(target: Target, host: Host) -> tuple[HostGpu, ...]:
    """Return the GPUs that the target gets: those that fit and are of one name.

    It is the first's: a target that is dealt another GPU every night has no history.
    """
    found = fitting_gpus(target, host)
    return tuple(gpu for gpu in found if gpu.name == found[0].name)


def fitting_gpus(target: Target, host: Host) -> tuple[HostGpu, ...]:
    """Return the GPUs of `host` that can run the engines of `target`."""
    return tuple(
        gpu
        for gpu in host.gpus
        if target.needs.compute_capability_fits(gpu.compute_capability)
        and target.needs.driver_fits(gpu.driver)
    )


def architecture(target: Target) -> str:
    """Return the target's architecture in Docker's words."""
    return target.docker_platform.partition("/")[2]


def _jetson(target: Target, host: Host) -> str | None:
    wanted = f"a Jetson with Jetson Linux {target.needs.l4t}".rstrip()
    if host.docker is not None and host.docker_elsewhere:
        # A board reached over DOCKER_HOST: its release is not known here, its architecture and runtime are.
        if host.docker.architecture == "arm64" and host.docker.nvidia_runtime:
            return None
        return f"needs {wanted}; the Docker daemon at {host.docker.address} is not on one"
    if host.jetson is None:
        return f"needs {wanted}; this machine is linux/{host.architecture} without /etc/nv_tegra_release"
    if not target.needs.l4t_fits(host.jetson):
        return f"needs {wanted}; this one runs {host.jetson}"
    return None


def _gpu(target: Target, host: Host, via: Via) -> str | None:
    if host.docker is not None and via != "venv":
        if host.docker_elsewhere:
            # Which GPUs it has, only a container there can say.
            without = f"needs an NVIDIA GPU; the Docker daemon at {host.docker.address} has no NVIDIA runtime"
            return None if host.docker.nvidia_runtime else without
        if host.docker.desktop and not host.wsl:
            return "needs an NVIDIA GPU; Docker Desktop hands one to a container under WSL2 alone (see --via venv)"
    if not host.gpus:
        return f"needs an NVIDIA GPU; none found{f' ({host.gpu_reason})' if host.gpu_reason else ''}"
    return None if fitting_gpus(target, host) else _no_fit(target.needs, host.gpus)


def _no_fit(needs: Needs, gpus: tuple[HostGpu, ...]) -> str:
    capable = [gpu for gpu in gpus if needs.compute_capability_fits(gpu.compute_capability)]
    if capable:
        return f"needs NVIDIA driver {needs.driver}; this machine has {capable[0].driver}"
    found = ", ".join(f"{gpu.name} ({gpu.compute_capability})" for gpu in gpus)
    return f"needs a GPU of compute capability {needs.compute_capability}; found {found}"


def _packages(target: Target, host: Host, via: Via) -> str | None:
    if target.packages or via == "docker" or (via == "auto" and host.docker is not None):
        return None
    why = "" if via == "venv" else f"; {host.docker_reason}"
    return f"needs its container image, as the package index does not carry it{why}"


def _architecture(target: Target, host: Host, via: Via) -> str | None:
    wanted = architecture(target)
    if via == "venv" or host.docker is None:
        if wanted == host.architecture:
            return None
        without = (
            "a virtual environment"
            if via == "venv"
            else f"without Docker ({host.docker_reason}) this machine"
        )
        return f"needs linux/{wanted}; {without} runs linux/{host.architecture} alone"
    runs = host.docker.architecture
    if wanted == runs or wanted in host.emulated or host.docker_elsewhere or host.docker.desktop:
        return None
    return f"needs linux/{wanted} and no emulation of it is registered: {_EMULATE.format(wanted)}"


def refuse_unconfined(targets: Iterable[Target], via: Via = "auto", host: Host | None = None) -> None:
    """Raise if untrusted targets are to run here and this machine's daemon makes no container that confines them.

    That is an InfraError where there is no daemon, and a HandledError where it is the command or the daemon's settings.

    Hosts that targets name are not asked: there is no other way there than a container.
    """
    untrusted = [target for target in targets if target.untrusted]
    if not untrusted:
        return
    cure = "; give --trusted where the models are your own"
    if via == "venv":
        raise HandledError(f"--via venv is refused for untrusted models: {BARE}{cure}")
    if all(target.host for target in untrusted):
        return
    host = host or look_at_host()
    if host.docker is None:
        raise InfraError(f"untrusted models run in containers alone, and {host.docker_reason}: {BARE}{cure}")
    if not host.docker.filters:
        raise HandledError(
            f"untrusted models are refused: {UNFILTERED}, and what they ask of it is unbounded{cure}"
        )
