"""From an event of a provider of continuous integration to one verdict. Torch-free."""
