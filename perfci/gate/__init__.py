"""A head judged by its base."""
