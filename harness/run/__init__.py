"""Runs cells and observes them: environment, agent, jobs, records."""
