"""Paraphrases from a language model. What a server says of a tool is data; what the model says is checked."""

import json
import re
from collections.abc import Sequence

from toolscript.errors import Rejected
from toolscript.evaluation.drafting_text import first_sentence
from toolscript.model.items import Item, JsonObject
from toolscript.model.text import readable
from toolscript.model.words import words_of
from toolscript.ports import TextModel

PER_TOOL = 3
MOST_READ = 20
MAX_NAME, MAX_DESCRIPTION, MAX_PARAMETERS = 200, 1_500, 20
MAX_PARAPHRASE = 200
# Small models answer with the names of parameters, which nobody would call a request.
FEWEST_WORDS = 3

INSTRUCTIONS = (
    "A person wants something done and does not know which tool can do it. The data describes one tool."
    f" Write {PER_TOOL} short requests, in English, that this tool would fulfil, each as somebody else would."
    " Use everyday words rather than those of the description. Never write the name of the tool."
)
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"requests": {"type": "array", "items": {"type": "string"}, "maxItems": PER_TOOL}},
    "required": ["requests"],
    "additionalProperties": False,
}


class ModelParaphrases:
    def __init__(self, model: TextModel) -> None:
        self._model = model

    async def __call__(self, item: Item) -> Sequence[str]:
        answer = await self._model.reply(INSTRUCTIONS, _described(item), SCHEMA)
        given = answer.get("requests")
        if not isinstance(given, list):
            raise Rejected("the text model gave no list of requests", hint="try a larger model")
        return usable([text for text in given[:MOST_READ] if isinstance(text, str)], item)


def usable(texts: Sequence[str], item: Item) -> list[str]:
    """The first different texts that are short and neither repeat the description nor give the name away."""
    repeated = {"", _letters(item.description), _letters(first_sentence(item.description))}
    name = re.compile(rf"(?<!\w){re.escape(item.name)}(?!\w)", re.IGNORECASE)
    found: dict[str, str] = {}
    for text in (" ".join(readable(text).split()) for text in texts):
        is_request = len(text.split()) >= FEWEST_WORDS and len(text) <= MAX_PARAPHRASE
        if is_request and _letters(text) not in repeated and not name.search(text):
            found.setdefault(_letters(text), text)
    return list(found.values())[:PER_TOOL]


def _described(item: Item) -> str:
    properties = (item.input_schema or {}).get("properties")
    parameters = list(properties)[:MAX_PARAMETERS] if isinstance(properties, dict) else []
    described = {
        "name": item.name[:MAX_NAME],
        "description": item.description[:MAX_DESCRIPTION],
        "parameters": [str(name)[:MAX_NAME] for name in parameters],
    }
    return json.dumps(described, ensure_ascii=False)


def _letters(text: str) -> str:
    return " ".join(words_of(text))
