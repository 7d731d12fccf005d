"""Environments of Python that sides bring: what they ask for, and where that is installed."""
