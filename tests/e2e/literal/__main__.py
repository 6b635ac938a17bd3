"""Literal mode against the bare engine, on evaluation datasets, with the quality of each.

    python -m tests.e2e.literal --model FOLDER SET...

Each SET is a folder as `toolscript-eval` reads it. The engines are those of the environment; the collections are
made for this and dropped afterwards. Ends with 1 where an answer differs.
"""

import argparse
import asyncio
import logging
import sys
from pathlib import Path

from tests.e2e.literal.compare import Compared, compared
from toolscript.core.settings.service import Settings
from toolscript_eval.dataset import read_dataset
from toolscript_eval.judging import evenly_spread

SHOWN = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder of a judged set")
    parser.add_argument("--model", required=True, help="folder or name of the embedding model")
    parser.add_argument("--count", type=int, help="so many requests of each set, from the first to the last")
    parser.add_argument("--distractors", type=Path, help="folder of a catalog to mix in")
    arguments = parser.parse_args()
    # Fallbacks are counted; they need not be logged for every search.
    logging.getLogger("toolscript").setLevel(logging.ERROR)
    settings = Settings().model_copy(update={"embedding_model": arguments.model, "embedding_url": ""})
    differing = 0
    for folder in arguments.sets:
        judged = evenly_spread(read_dataset(folder, distractors=arguments.distractors), arguments.count)
        result = asyncio.run(compared(settings, judged))
        differing += len(result.differing)
        tell(result)
    return 1 if differing else 0


def tell(result: Compared) -> None:
    sys.stdout.write(f"{result.told()}\n")
    for pair in result.differing[:SHOWN]:
        ours = [(hit.id, round(hit.score, 6)) for hit in pair.literal.hits]
        sys.stdout.write(f"  {pair.query.id} {pair.query.text!r}\n")
        sys.stdout.write(f"    literal {pair.literal.skill_ids_used} {ours}\n")
        sys.stdout.write(f"    bare    {pair.bare.skills} {[(id_, round(x, 6)) for id_, x in pair.bare.hits]}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
