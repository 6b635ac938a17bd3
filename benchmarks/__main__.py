"""`python -m benchmarks`."""

from benchmarks.cli import bench_commands
from toolscript.__main__ import start

app = bench_commands()

if __name__ == "__main__":
    start(app)
