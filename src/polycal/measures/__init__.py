"""Numbers that say how far predictions are from outcomes: smooth, in bins, and as scores."""
