"""Loads the plugin, so that `pytest` in this folder collects matrix.yaml."""

pytest_plugins = ["harness.pytest_plugin"]
