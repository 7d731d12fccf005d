"""How a latency is read: one module a timer."""
