"""Sets of values and of three-valued states: what conditions mean for one column."""
