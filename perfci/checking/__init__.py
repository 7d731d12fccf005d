"""Whether what a kernel computes is right, and whether the check could tell."""
