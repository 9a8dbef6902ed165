"""The two programs of docs/benchmarks.md."""
