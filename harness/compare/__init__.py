"""Known x known: what a step from one column to another does, and how a variant fares along its versions."""
