"""The library in MongoDB."""
