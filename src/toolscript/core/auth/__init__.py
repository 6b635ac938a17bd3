"""Principals, plans, tokens and the keys that sign them."""
