"""Model folders: opened, saved, started from other people's, edited."""
