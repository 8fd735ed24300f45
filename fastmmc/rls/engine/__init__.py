"""One state and its searches: labellings of points, or of groups of points, that have masses."""
