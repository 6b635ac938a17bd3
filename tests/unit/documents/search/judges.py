"""Language models behind the scripted endpoint, as judges of passages."""

import json
from typing import Any

from toolscript.core.retrieval.terms import words_of


def told(request: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The query and the passages in the data of a request."""
    fenced = request["messages"][1]["content"].split("\n")
    query, *passages = [json.loads(line) for line in fenced[1:-1]]
    return query["query"], passages


def fair(request: dict[str, Any]) -> dict[str, object]:
    """The share of the query's words that a passage has."""
    query, passages = told(request)
    asked = set(words_of(query))
    return {
        "scores": [
            {"passage": one["passage"], "score": round(100 * len(asked & set(words_of(one["text"]))) / len(asked))}
            for one in passages
        ]
    }
