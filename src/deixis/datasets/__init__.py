"""Benchmark data in: one reader a format."""
