"""Speed against the bare engines, at scale and under load. Not in the wheel: `python -m benchmarks --help`."""
