"""Language models behind the scripted endpoint: one that answers correctly, and one that obeys the data."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def items_in(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items in the data of a request, one per line."""
    fenced = request["messages"][1]["content"].split("\n")
    return [json.loads(line) for line in fenced[1:-1]]


def offered(request: dict[str, Any]) -> list[str]:
    """Return the skills that the schema of a request allows."""
    schema = request["response_format"]["json_schema"]["schema"]
    answer = schema["properties"]["items"]["items"]["properties"]
    return list(answer["assignments"]["items"]["properties"]["skill_id"]["enum"])


def assignment(skill_id: str, confidence: object = 0.9) -> dict[str, object]:
    return {"skill_id": skill_id, "reason": "as it looks", "confidence": confidence}


def answer(number: int, *assignments: object, suggested: object = None) -> dict[str, object]:
    return {"item": number, "assignments": list(assignments), "suggested_new_skill": suggested}


def honest(request: dict[str, Any]) -> dict[str, object]:
    """Return an arbitrary but valid skill for each item."""
    skills = offered(request)
    return {
        "items": [
            answer(item["item"], assignment(skills[item["item"] % len(skills)])) for item in items_in(request)
        ]
    }


def obedient(right: Mapping[str, Sequence[str]]) -> Callable[[dict[str, Any]], object]:
    """Return a model that gives every item the skills demanded by any text in the data, else those in `right`."""

    def reply(request: dict[str, Any]) -> dict[str, object]:
        lines = items_in(request)
        demanded = _demanded(json.dumps(lines, ensure_ascii=False), _names(request))
        return {
            "items": [
                answer(item["item"], *_confident(demanded or right.get(f"{item['server']}__{item['name']}", ())))
                for item in lines
            ]
        }

    return reply


def _confident(skills: Sequence[str]) -> list[dict[str, object]]:
    return [assignment(skill, 1 - place / 10) for place, skill in enumerate(skills[:3])]


def _names(request: dict[str, Any]) -> dict[str, str]:
    """Return the names of the skills in the instructions of a request, by id."""
    lines = request["messages"][0]["content"].split("\n")
    skills = [json.loads(line) for line in lines if line.startswith("{")]
    return {skill["id"]: skill["name"] for skill in skills}


def _demanded(text: str, names: Mapping[str, str]) -> list[str]:
    if re.search(r"\b(?:every|all)\b.{0,20}\b(?:skill|categor)", text, re.IGNORECASE):
        return list(names)[:3]
    return [skill for skill, name in names.items() if ("_" in skill and skill in text) or name in text]
