"""Words that belong to one language, or to the wikis of many: lists, and nothing that reads text."""
