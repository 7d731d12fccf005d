"""What figures say of two commits: estimates, intervals, verdicts. Never torch."""
