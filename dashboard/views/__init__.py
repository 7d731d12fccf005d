"""What the pages show: rows in, components out; one module a page."""
