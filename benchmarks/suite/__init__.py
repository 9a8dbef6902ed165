"""What the harness costs beside what it drives, in one run: `python -m benchmarks.suite`; see docs/benchmarks.md."""
