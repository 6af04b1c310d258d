"""Evaluates a condition over the statistics of all splits at once, in arrays; `index` knows NULL, NaN and cut bounds."""
