"""Works with sets of values and of three-valued states: what a condition means for one column."""
