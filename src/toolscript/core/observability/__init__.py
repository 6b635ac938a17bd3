"""Tracing, and the route of the metrics."""
