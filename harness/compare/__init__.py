"""Known x known: the changes of a step from one column to another, and how a variant fares along its versions."""
