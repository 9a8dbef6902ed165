"""What is told of a model without an engine, held to all that was measured."""
