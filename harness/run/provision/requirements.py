"""What a machine lacks for a target: pure, offline, and asked before anything is pulled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.run.provision.host import Gpu, Host
    from harness.run.provision.model import Via

_EMULATE = "docker run --privileged --rm tonistiigi/binfmt --install {}"


def can_run(target: Target, host: Host, via: Via = "auto") -> str | None:
    """Return why `target` cannot run on `host`, as a clause that begins with "needs", or None when it can."""
    if target.platform == "jetson":
        return _jetson(target, host)
    gpu = _gpu(target, host, via) if target.needs.gpu else None
    return gpu or _architecture(target, host, via) or _packages(target, host, via)


def fitting_gpus(target: Target, host: Host) -> tuple[Gpu, ...]:
    """Return the GPUs of `host` that can run what `target` builds."""
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
    needs = target.needs
    if host.docker is not None and host.docker_elsewhere and via != "venv":
        if host.docker.nvidia_runtime:
            return None  # which GPUs it has, only a container there can say
        return f"needs an NVIDIA GPU; the Docker daemon at {host.docker.address} has no NVIDIA runtime"
    if not host.gpus:
        return f"needs an NVIDIA GPU; none found{f' ({host.gpu_reason})' if host.gpu_reason else ''}"
    capable = [gpu for gpu in host.gpus if needs.compute_capability_fits(gpu.compute_capability)]
    if not capable:
        found = ", ".join(f"{gpu.name} ({gpu.compute_capability})" for gpu in host.gpus)
        return f"needs a GPU of compute capability {needs.compute_capability}; found {found}"
    fits = any(needs.driver_fits(gpu.driver) for gpu in capable)
    return None if fits else f"needs NVIDIA driver {needs.driver}; this machine has {capable[0].driver}"


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
    if wanted == runs or wanted in host.emulated or host.docker_elsewhere:
        return None
    return f"needs linux/{wanted} and no emulation of it is registered: {_EMULATE.format(wanted)}"
