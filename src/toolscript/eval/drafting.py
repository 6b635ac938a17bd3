"""Drafts a dataset from a catalog: queries by rules, and paraphrases by a language model.

The same items and the same seed make the same draft, unless a text model has a part in it. All of it is for a
person to correct: rules know neither which tools can stand in for each other nor what a catalog is unable to do.
"""

import json
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from random import Random

from toolscript.core.errors import InvalidRequest, Rejected
from toolscript.core.item_json import MAX_NAME
from toolscript.core.items import Item, ItemKind, JsonObject, tool_id
from toolscript.core.llm.model import TextModel
from toolscript.core.retrieval.query import MAX_QUERY
from toolscript.core.retrieval.terms import split_identifier, terms_of_word, without_stop_words, words_of
from toolscript.core.text import readable
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.eval.dataset import DatasetQuery, Draft, DraftedQuery
from toolscript.eval.drafting_words import FAR_OFF, first_sentence, wish, with_slip

EXACT, TYPO, PARAPHRASE, UNANSWERABLE = "exact", "typo", "paraphrase", "unanswerable"
MODEL_PARAPHRASE = "model_paraphrase"
# Of a far-off request's words, the share a catalog may know, and how many of them one tool.
KNOWN_SHARE, KNOWN_BY_ONE_TOOL = 0.5, 1
# Two tools of one name are taken for the same when they share this much of their words.
ALIKE = 0.5
NOTE_UNANSWERABLE = "check that really none of the tools can do this"

Paraphrase = Callable[[Item], Awaitable[Sequence[str]]]
Asked = Iterator[tuple[str, Sequence[Item]]]

PER_TOOL = 3
MAX_READ = 20
MAX_PROMPT_NAME, MAX_PROMPT_DESCRIPTION, MAX_PROMPT_PARAMETERS = 200, 1_500, 20
MAX_PARAPHRASE = 200
# Small models answer with the names of parameters, which nobody would call a request.
MIN_WORDS = 3

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


async def draft(
    items: Sequence[Item],
    *,
    seed: int,
    per_kind: int,
    paraphrase: Paraphrase | None = None,
    on_progress: OnProgress = silent,
) -> Draft:
    """At most `per_kind` queries of each kind; fewer where the catalog gives no more."""
    catalog = _Catalog(_tools(items))
    if not catalog.tools:
        raise InvalidRequest("there are no tools to draft queries for", hint="see `toolscript list-servers`")
    chosen = _Chosen(per_kind)
    chosen.take(EXACT, catalog.names(_chance(seed, EXACT)))
    chosen.take(TYPO, catalog.typos(_chance(seed, TYPO)))
    chosen.take(PARAPHRASE, catalog.wishes(_chance(seed, PARAPHRASE)))
    if paraphrase is not None:
        asked = catalog.shuffled(_chance(seed, MODEL_PARAPHRASE))[:per_kind]
        chosen.take(MODEL_PARAPHRASE, iter(await _paraphrased(catalog, asked, paraphrase, on_progress)))
    chosen.take(UNANSWERABLE, catalog.far_off(_chance(seed, UNANSWERABLE)), note=NOTE_UNANSWERABLE)
    return Draft(catalog.tools, chosen.queries)


def _chance(seed: int, kind: str) -> Random:
    """Of its own for each kind: they are about different tools, and one of them can change alone."""
    return Random(f"{seed} {kind}")  # noqa: S311


def _tools(items: Sequence[Item]) -> list[Item]:
    """In order of their keys, which become `server__name` where that tells all of them apart."""
    tools = list({item.key: item for item in items if item.kind is ItemKind.TOOL}.values())
    names = [tool_id(item.server, item.name) for item in tools]
    if len(set(names)) == len(names) and all(len(name) <= MAX_NAME for name in names):
        tools = [replace(item, key=name) for name, item in zip(names, tools, strict=True)]
    return sorted(tools, key=lambda item: item.key)


async def _paraphrased(
    catalog: "_Catalog", tools: Sequence[Item], paraphrase: Paraphrase, on_progress: OnProgress
) -> list[tuple[str, Sequence[Item]]]:
    """Small models talk nonsense now and then: a tool is left out for it, and only nonsense alone is a failure."""
    found: list[tuple[str, Sequence[Item]]] = []
    refused: Rejected | None = None
    for done, tool in enumerate(tools, 1):
        try:
            found += [(text, catalog.alike(tool)) for text in await paraphrase(tool)]
        except Rejected as error:
            refused = error
        on_progress(Progress("paraphrasing", done, len(tools)))
    if refused is not None and not found:
        raise refused
    return found


class _Chosen:
    """The queries taken so far, no text twice."""

    def __init__(self, per_kind: int) -> None:
        self.queries: list[DraftedQuery] = []
        self._per_kind = per_kind
        self._texts: set[str] = set()

    def take(self, kind: str, asked: Asked, note: str = "") -> None:
        count = 0
        while count < self._per_kind:
            text, tools = next(asked, ("", ()))
            if not text:
                return
            if text.casefold() not in self._texts and len(text) <= MAX_QUERY:
                self._texts.add(text.casefold())
                count += 1
                self.queries.append(DraftedQuery(kind, _judged(f"{kind}-{count:03}", text, tools), note))


def _judged(id_: str, text: str, tools: Sequence[Item]) -> DatasetQuery:
    keys = [tool.key for tool in tools]
    return DatasetQuery(id_, text, dict.fromkeys(keys, 1), (frozenset(keys),) if keys else ())


class _Catalog:
    """The tools, and what could be asked for them, in an order that chance decides."""

    def __init__(self, tools: Sequence[Item]) -> None:
        self.tools = tools
        self._by_name: defaultdict[str, list[Item]] = defaultdict(list)
        self._by_sentence: defaultdict[str, list[Item]] = defaultdict(list)
        for tool in tools:
            self._by_name[_plain(tool.name)].append(tool)
            self._by_sentence[first_sentence(tool.description).casefold()].append(tool)

    def shuffled(self, chance: Random) -> list[Item]:
        return chance.sample(self.tools, len(self.tools))

    def alike(self, tool: Item) -> Sequence[Item]:
        """The tool, those that say the same, and those of the same name that are described alike or not at all."""
        sentence = first_sentence(tool.description).casefold()
        same = [other for other in self._by_name[_plain(tool.name)] if _described_alike(tool, other)]
        found = {other.key: other for other in (tool, *same, *(self._by_sentence[sentence] if sentence else ()))}
        return list(found.values())

    def names(self, chance: Random) -> Asked:
        """By turns the bare name, which means every tool of that name, and the name with its server."""
        for place, tool in enumerate(self.shuffled(chance)):
            if place % 2:
                yield tool_id(tool.server, tool.name), [tool]
            else:
                yield tool.name, self._by_name[_plain(tool.name)]

    def typos(self, chance: Random) -> Asked:
        for place, tool in enumerate(self.shuffled(chance)):
            sentence = first_sentence(tool.description)
            of_name = place % 2 == 0 or not sentence
            slipped = with_slip(tool.name if of_name else sentence, chance)
            if slipped and _plain(slipped) not in self._by_name:
                yield slipped, self._by_name[_plain(tool.name)] if of_name else self.alike(tool)

    def wishes(self, chance: Random) -> Asked:
        for tool in self.shuffled(chance):
            wished = wish(first_sentence(tool.description), chance)
            if wished:
                yield wished, self.alike(tool)

    def far_off(self, chance: Random) -> Asked:
        return ((text, ()) for text in chance.sample(FAR_OFF, len(FAR_OFF)) if self._knows_little_of(text))

    def _knows_little_of(self, text: str) -> bool:
        stems = _stems(text)
        known = sum(stem in self._stems_of_all for stem in stems)
        maximum = max(len(stems & of_one) for of_one in self._stems_by_tool)
        return known <= KNOWN_SHARE * len(stems) and maximum <= KNOWN_BY_ONE_TOOL

    @cached_property
    def _stems_by_tool(self) -> Sequence[set[int]]:
        return [_stems(f"{tool.name} {tool.description}") for tool in self.tools]

    @cached_property
    def _stems_of_all(self) -> set[int]:
        return set().union(*self._stems_by_tool)


def _plain(name: str) -> str:
    """`read_file`, `readFile` and `read-file` are one name."""
    return split_identifier(name).casefold()


def _described_alike(tool: Item, other: Item) -> bool:
    ours, theirs = _stems(tool.description), _stems(other.description)
    return not ours or not theirs or len(ours & theirs) >= ALIKE * len(ours | theirs)


def _stems(text: str) -> set[int]:
    return {terms_of_word(word)[0] for word in without_stop_words(words_of(text))}


class ModelParaphrases:
    def __init__(self, model: TextModel) -> None:
        self._model = model

    async def __call__(self, item: Item) -> Sequence[str]:
        answer = await self._model.reply(INSTRUCTIONS, _described(item), SCHEMA)
        given = answer.get("requests")
        if not isinstance(given, list):
            raise Rejected("the text model gave no list of requests", hint="try a larger model")
        return usable([text for text in given[:MAX_READ] if isinstance(text, str)], item)


def usable(texts: Sequence[str], item: Item) -> list[str]:
    """The first different texts that are short and neither repeat the description nor give the name away."""
    repeated = {"", _letters(item.description), _letters(first_sentence(item.description))}
    name = re.compile(rf"(?<!\w){re.escape(item.name)}(?!\w)", re.IGNORECASE)
    found: dict[str, str] = {}
    for text in (" ".join(readable(text).split()) for text in texts):
        is_request = len(text.split()) >= MIN_WORDS and len(text) <= MAX_PARAPHRASE
        if is_request and _letters(text) not in repeated and not name.search(text):
            found.setdefault(_letters(text), text)
    return list(found.values())[:PER_TOOL]


def _described(item: Item) -> str:
    properties = (item.input_schema or {}).get("properties")
    parameters = list(properties)[:MAX_PROMPT_PARAMETERS] if isinstance(properties, dict) else []
    described = {
        "name": item.name[:MAX_PROMPT_NAME],
        "description": item.description[:MAX_PROMPT_DESCRIPTION],
        "parameters": [str(name)[:MAX_PROMPT_NAME] for name in parameters],
    }
    return json.dumps(described, ensure_ascii=False)


def _letters(text: str) -> str:
    return " ".join(words_of(text))
