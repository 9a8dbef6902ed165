"""Makes a target's environment: a container image pulled or built, or a virtual environment.

`prepare` does it, `look_at_host` gives a machine as a `Host`, `can_run` names its lacks.
"""
