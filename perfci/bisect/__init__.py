"""The search for the commit that made a cell slower or wrong."""
