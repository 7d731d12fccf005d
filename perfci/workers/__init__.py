"""Processes that run code under test, seen from inside and from outside."""
