"""Evaluation: datasets, metrics, baselines and reports of search quality."""
