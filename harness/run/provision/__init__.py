"""Makes a target's environment: a container image pulled or built, or a virtual environment.

`prepare` does it, `look_at_host` gives a machine as a `Host`, `can_run` names its lacks.
"""

from harness.run.provision.cache import cache_dir
from harness.run.provision.host import Gpu, Host, host_of, look_at_host
from harness.run.provision.images import Pulling, PullPlan, image_command_lines, plan_pulls, planned_image
from harness.run.provision.model import Environment, NotMade, Unavailable, Unreachable, Via
from harness.run.provision.prepare import docker_command_line, prepare, start
from harness.run.provision.requirements import can_run, older_driver, refuse_unconfined

__all__ = [
    "Environment",
    "Gpu",
    "Host",
    "NotMade",
    "PullPlan",
    "Pulling",
    "Unavailable",
    "Unreachable",
    "Via",
    "cache_dir",
    "can_run",
    "docker_command_line",
    "host_of",
    "image_command_lines",
    "look_at_host",
    "older_driver",
    "plan_pulls",
    "planned_image",
    "prepare",
    "refuse_unconfined",
    "start",
]
