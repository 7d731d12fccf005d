"""What compiled code is, read from its files without tools that a pip install lacks."""
