"""Records what both products answer, and replays it on another commit.

    python -m tests.recording record     ask everything, and write tests/recording/answers.json.gz
    python -m tests.recording replay     ask everything again; print what differs, exit 1 if anything does

The service runs on the engines that the environment names: eval "$(scripts/engines start)". `--only gateway` and
`--only service` take one of them.
"""

import argparse
import asyncio
import gzip
import json
import sys
from pathlib import Path

from tests.recording.digests import differences
from tests.recording.requests import catalog, documents, gateway, knowledge
from tests.recording.running import Recorded, record_gateway, record_service, say

FILE = Path(__file__).with_name("answers.json.gz")
SHOWN = 200


def recorded_now(only: str) -> dict[str, Recorded]:
    products: dict[str, Recorded] = {}
    if only != "service":
        products["gateway"] = asyncio.run(record_gateway([*gateway()], say))
    if only != "gateway":
        products["service"] = record_service([[*catalog()], [*documents()], [*knowledge()]], say)
    return products


def read() -> dict[str, Recorded]:
    return dict(json.loads(gzip.decompress(FILE.read_bytes()))) if FILE.is_file() else {}


def write(products: dict[str, Recorded]) -> None:
    text = json.dumps(read() | products, sort_keys=True, separators=(",", ":"))
    # Without a time, so that the same answers make the same file.
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "replay"))
    parser.add_argument("--only", choices=("gateway", "service"), default="")
    arguments = parser.parse_args()
    now = recorded_now(arguments.only)
    if arguments.action == "record":
        write(now)
        sys.stdout.write(f"recorded {sum(map(len, now.values()))} answers\n")
        return 0
    before = read()
    found = [
        difference for name, answers in now.items() for difference in differences(before.get(name, {}), answers)
    ]
    sys.stdout.write("".join(f"{difference}\n" for difference in found[:SHOWN]))
    sys.stdout.write(f"{len(found)} of {sum(map(len, now.values()))} answers differ\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
