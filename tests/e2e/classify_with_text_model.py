"""By hand: a real language model classifies the first items of a file; prints the results.

    python -m tests.e2e.classify_with_text_model ITEMS.jsonl --url http://127.0.0.1:8080/v1 --model NAME

The rules are the fallback, as in the service; the folder of their embedding model is TOOLSCRIPT_TEST_MODEL's.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from tests.unit.tools.classify.builders import default_skills, unclassified
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.items import Item, ItemKind, valid_assignments
from toolscript.core.llm.openai import OpenAITextModel
from toolscript.tools.classify.llm import LlmClassifier
from toolscript.tools.classify.rules import FallbackClassifier, RulesClassifier


def items_of(path: Path, count: int) -> list[Item]:
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, count)]
    return [
        Item(
            str(row["id"]),
            ItemKind.TOOL,
            row.get("server") or "",
            row["name"],
            row.get("description") or "",
            input_schema=row.get("input_schema"),
        )
        for row in rows
    ]


async def run(given: argparse.Namespace) -> dict[str, object]:
    embedder = LocalEmbedder(os.environ["TOOLSCRIPT_TEST_MODEL"], threads=1)
    rules = RulesClassifier(embedder)
    skills = default_skills()[: given.skills]
    items = await unclassified(embedder, items_of(given.file, given.count))
    text = OpenAITextModel(
        given.url, given.model, timeout_seconds=given.timeout, deadline_seconds=3 * given.timeout
    )
    llm = LlmClassifier(text, rules, batch=given.batch, concurrency=given.concurrency)
    began = time.monotonic()
    answers = await FallbackClassifier(llm, rules).classify(items, skills)
    seconds = time.monotonic() - began
    existing = frozenset(skill.id for skill in skills)
    sources = Counter(
        str(answer.assignments[0].source)
        if answer.assignments
        else "suggestion"
        if answer.suggestion
        else "nobody"
        for answer in answers
    )
    await text.close()
    embedder.close()
    return {
        "items": len(items),
        "skills offered": len(skills),
        "valid": sum(
            1 for answer in answers if valid_assignments(answer.assignments, existing) == answer.assignments
        ),
        "answered by": dict(sources),
        "usage": text.usage,
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="m")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--skills", type=int, default=60, help="how many of the default skills to offer")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120.0)
    for name, value in asyncio.run(run(parser.parse_args())).items():
        sys.stdout.write(f"{name}: {value}\n")


if __name__ == "__main__":
    main()
