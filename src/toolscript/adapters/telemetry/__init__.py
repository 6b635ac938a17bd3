"""What is done, to whoever watches: spans in OpenTelemetry, figures for Prometheus.

Each in a module of its own, loaded by whoever wants it: an installation that is not watched pays for none of it.
"""
