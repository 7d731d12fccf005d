"""The pages: each registers its address and answers it."""
