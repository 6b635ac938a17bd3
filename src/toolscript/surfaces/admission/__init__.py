"""Admission control: a request that there is no capacity for is refused at once, before anything is done."""
