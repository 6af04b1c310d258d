"""One module per verb: a pure plan, then an apply over an executor."""
