"""What differs between two columns, or along a row: the judgement of a step from A to B."""
