"""Scripted language models that score chunks."""

import json
from typing import Any

from toolscript.core.retrieval.terms import words_of


def sent_data(request: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the query and the chunks in the data of a request."""
    fenced = request["messages"][1]["content"].split("\n")
    query, *chunks = [json.loads(line) for line in fenced[1:-1]]
    return query["query"], chunks


def fair(request: dict[str, Any]) -> dict[str, object]:
    """Score each chunk by the share of the query's words that it has."""
    query, chunks = sent_data(request)
    words = set(words_of(query))
    return {
        "scores": [
            {
                "passage": chunk["passage"],
                "score": round(100 * len(words & set(words_of(chunk["text"]))) / len(words)),
            }
            for chunk in chunks
        ]
    }
