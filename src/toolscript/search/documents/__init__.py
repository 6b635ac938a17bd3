"""Finds documents of one tenant."""
