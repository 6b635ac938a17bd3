"""Many workers, killed again and again, under random operations: what is left must be what a plain model says."""
