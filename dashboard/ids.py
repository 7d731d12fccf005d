"""Identifiers of the components that a callback or a stylesheet refers to."""

LOCATION = "location"
HISTORY_FIGURE = "history-figure"
SAMPLES_FIGURE = "samples-figure"
