"""A GPU as its driver and NVML tell of it: what a call launches, clocks, who else is on it."""
