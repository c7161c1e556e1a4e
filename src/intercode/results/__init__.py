"""Results of recorded episodes: statistics, reports, comparisons, exports and the viewer."""
