"""From documents with mentions to resolutions: which candidates take part, in which batches, with what result."""
