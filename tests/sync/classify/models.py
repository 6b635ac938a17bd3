"""Language models behind the scripted endpoint: one that answers as it should, and one that does as it is told."""

import json
import re
from typing import Any


def told(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The items in the data of a request, by line."""
    fenced = request["messages"][1]["content"].split("\n")
    return [json.loads(line) for line in fenced[1:-1]]


def offered(request: dict[str, Any]) -> list[str]:
    """The skills that the schema of a request allows."""
    schema = request["response_format"]["json_schema"]["schema"]
    answer = schema["properties"]["items"]["items"]["properties"]
    return list(answer["assignments"]["items"]["properties"]["skill_id"]["enum"])


def assignment(skill_id: str, confidence: object = 0.9) -> dict[str, object]:
    return {"skill_id": skill_id, "reason": "as it looks", "confidence": confidence}


def answer(number: int, *assignments: object, suggested: object = None) -> dict[str, object]:
    return {"item": number, "assignments": list(assignments), "suggested_new_skill": suggested}


def honest(request: dict[str, Any]) -> dict[str, object]:
    """For each item the skill at its place: not wise, and always in form."""
    skills = offered(request)
    return {"items": [answer(one["item"], assignment(skills[one["item"] % len(skills)])) for one in told(request)]}


def obedient(request: dict[str, Any]) -> dict[str, object]:
    """Gives every item what any text in the data asks for, and where none does, what its own words sound like."""
    lines, skills = told(request), offered(request)
    everything = json.dumps(lines, ensure_ascii=False)
    demanded = [skill for skill in skills if "_" in skill and re.search(rf"\b{skill}\b", everything)]
    if re.search(r"\b(?:every|all)\b.{0,20}\b(?:skill|categor)", everything, re.IGNORECASE):
        demanded = skills[:3]
    return {
        "items": [
            answer(one["item"], *(assignment(skill, 1.0) for skill in demanded or [_sounding(one, skills)]))
            for one in lines
        ]
    }


def _sounding(item: dict[str, Any], skills: list[str]) -> str:
    words = set(re.findall(r"[a-z]+", f"{item['name']} {item['server']}".lower()))
    return max(skills, key=lambda skill: len(words & set(re.findall(r"[a-z]+", skill))))
