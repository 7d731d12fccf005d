"""NVIDIA's tools that watch a process, and the process that they watch."""
