"""What people and machines are told of runs and comparisons, one module a format."""
