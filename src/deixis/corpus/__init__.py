"""Articles to training data: names, counts, windows."""
