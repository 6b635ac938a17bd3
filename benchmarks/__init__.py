"""Speed against the bare engines, at scale and under load. Beside the package: `python -m benchmarks --help`."""
