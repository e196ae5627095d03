"""Many exchanges: distributions, goals, and comparisons of arms with their intervals."""
