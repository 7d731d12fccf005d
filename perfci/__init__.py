"""Continuous integration for GPU kernel performance."""

__version__ = "0.1.0"
