"""Composition root of the service: opens the engines, wires the capabilities and serves them."""
