"""Classifiers: which skills an item belongs to, by rules or by a language model."""
