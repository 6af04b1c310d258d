"""Pure rules: types, values, truncation, statistics, predicates, domains and pruning. No I/O, no engine."""
