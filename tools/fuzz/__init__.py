"""Coverage-guided fuzzing of every reader of bytes that others wrote: `make fuzz`."""
