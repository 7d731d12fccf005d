"""The pages that show what is in a store: newest figures, history along a branch, single runs."""
