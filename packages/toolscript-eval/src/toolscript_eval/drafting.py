"""Drafts a dataset from a catalog: queries by rules, and paraphrases by a language model.

The same items and the same seed give the same draft, unless a text model takes part. A person has to correct it:
rules know neither which tools are interchangeable nor what a catalog cannot do.
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
from toolscript_eval.dataset import DatasetQuery, Draft, DraftedQuery
from toolscript_eval.drafting_words import OFF_TOPIC, first_sentence, phrase_request, with_typo

EXACT, TYPO, PARAPHRASE, UNANSWERABLE = "exact", "typo", "paraphrase", "unanswerable"
MODEL_PARAPHRASE = "model_paraphrase"
# Maximum share of an off-topic request's words in the catalog, and their maximum number in one tool.
KNOWN_SHARE, KNOWN_BY_ONE_TOOL = 0.5, 1
# Two tools of one name count as the same if their descriptions share this much of their words.
ALIKE = 0.5
NOTE_UNANSWERABLE = "check that really none of the tools can do this"

Paraphrase = Callable[[Item], Awaitable[Sequence[str]]]
Queries = Iterator[tuple[str, Sequence[Item]]]

PER_TOOL = 3
MAX_READ = 20
MAX_PROMPT_NAME, MAX_PROMPT_DESCRIPTION, MAX_PROMPT_PARAMETERS = 200, 1_500, 20
MAX_PARAPHRASE = 200
# Small models reply with names of parameters, which are no requests.
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
    """Draft at most `per_kind` queries of each kind; fewer if the catalog gives no more."""
    catalog = _Catalog(_tools(items))
    if not catalog.tools:
        raise InvalidRequest("there are no tools to draft queries for", hint="see `toolscript list-servers`")
    chosen = _Chosen(per_kind)
    chosen.take(EXACT, catalog.names(_chance(seed, EXACT)))
    chosen.take(TYPO, catalog.typos(_chance(seed, TYPO)))
    chosen.take(PARAPHRASE, catalog.paraphrases(_chance(seed, PARAPHRASE)))
    if paraphrase is not None:
        paraphrased = catalog.shuffled(_chance(seed, MODEL_PARAPHRASE))[:per_kind]
        chosen.take(MODEL_PARAPHRASE, iter(await _paraphrased(catalog, paraphrased, paraphrase, on_progress)))
    chosen.take(UNANSWERABLE, catalog.off_topic(_chance(seed, UNANSWERABLE)), note=NOTE_UNANSWERABLE)
    return Draft(catalog.tools, chosen.queries)


def _chance(seed: int, kind: str) -> Random:
    """Return a random generator per kind: kinds use different tools, and each can change alone."""
    return Random(f"{seed} {kind}")  # noqa: S311


def _tools(items: Sequence[Item]) -> list[Item]:
    """Return the tools sorted by key, which becomes `server__name` if that is unique."""
    tools = list({item.key: item for item in items if item.kind is ItemKind.TOOL}.values())
    names = [tool_id(item.server, item.name) for item in tools]
    if len(set(names)) == len(names) and all(len(name) <= MAX_NAME for name in names):
        tools = [replace(item, key=name) for name, item in zip(names, tools, strict=True)]
    return sorted(tools, key=lambda item: item.key)


async def _paraphrased(
    catalog: "_Catalog", tools: Sequence[Item], paraphrase: Paraphrase, on_progress: OnProgress
) -> list[tuple[str, Sequence[Item]]]:
    """Collect paraphrases. Skip a tool without a usable reply; fail only if no reply is usable."""
    queries: list[tuple[str, Sequence[Item]]] = []
    refused: Rejected | None = None
    for done, tool in enumerate(tools, 1):
        try:
            queries += [(text, catalog.alike(tool)) for text in await paraphrase(tool)]
        except Rejected as error:
            refused = error
        on_progress(Progress("paraphrasing", done, len(tools)))
    if refused is not None and not queries:
        raise refused
    return queries


class _Chosen:
    """The drafted queries so far, without duplicate texts."""

    def __init__(self, per_kind: int) -> None:
        self.queries: list[DraftedQuery] = []
        self._per_kind = per_kind
        self._texts: set[str] = set()

    def take(self, kind: str, queries: Queries, note: str = "") -> None:
        count = 0
        while count < self._per_kind:
            text, tools = next(queries, ("", ()))
            if not text:
                return
            if text.casefold() not in self._texts and len(text) <= MAX_QUERY:
                self._texts.add(text.casefold())
                count += 1
                self.queries.append(DraftedQuery(kind, _dataset_query(f"{kind}-{count:03}", text, tools), note))


def _dataset_query(id_: str, text: str, tools: Sequence[Item]) -> DatasetQuery:
    keys = [tool.key for tool in tools]
    return DatasetQuery(id_, text, dict.fromkeys(keys, 1), (frozenset(keys),) if keys else ())


class _Catalog:
    """The tools and queries for them, in random order."""

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
        """Return the tool, those with its first sentence, and those of its name described alike or not at all."""
        sentence = first_sentence(tool.description).casefold()
        same = [other for other in self._by_name[_plain(tool.name)] if _described_alike(tool, other)]
        by_key = {other.key: other for other in (tool, *same, *(self._by_sentence[sentence] if sentence else ()))}
        return list(by_key.values())

    def names(self, chance: Random) -> Queries:
        """Yield alternately the bare name, which means every tool of that name, and the name with its server."""
        for place, tool in enumerate(self.shuffled(chance)):
            if place % 2:
                yield tool_id(tool.server, tool.name), [tool]
            else:
                yield tool.name, self._by_name[_plain(tool.name)]

    def typos(self, chance: Random) -> Queries:
        for place, tool in enumerate(self.shuffled(chance)):
            sentence = first_sentence(tool.description)
            of_name = place % 2 == 0 or not sentence
            typo = with_typo(tool.name if of_name else sentence, chance)
            if typo and _plain(typo) not in self._by_name:
                yield typo, self._by_name[_plain(tool.name)] if of_name else self.alike(tool)

    def paraphrases(self, chance: Random) -> Queries:
        for tool in self.shuffled(chance):
            request = phrase_request(first_sentence(tool.description), chance)
            if request:
                yield request, self.alike(tool)

    def off_topic(self, chance: Random) -> Queries:
        return ((text, ()) for text in chance.sample(OFF_TOPIC, len(OFF_TOPIC)) if self._is_off_topic(text))

    def _is_off_topic(self, text: str) -> bool:
        stems = _stems(text)
        known_count = sum(stem in self._stems_of_all for stem in stems)
        maximum = max(len(stems & tool_stems) for tool_stems in self._stems_by_tool)
        return known_count <= KNOWN_SHARE * len(stems) and maximum <= KNOWN_BY_ONE_TOOL

    @cached_property
    def _stems_by_tool(self) -> Sequence[set[int]]:
        return [_stems(f"{tool.name} {tool.description}") for tool in self.tools]

    @cached_property
    def _stems_of_all(self) -> set[int]:
        return set().union(*self._stems_by_tool)


def _plain(name: str) -> str:
    """Normalise a name: `read_file`, `readFile` and `read-file` are one."""
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
        requests = answer.get("requests")
        if not isinstance(requests, list):
            raise Rejected("the text model gave no list of requests", hint="try a larger model")
        return usable([text for text in requests[:MAX_READ] if isinstance(text, str)], item)


def usable(texts: Sequence[str], item: Item) -> list[str]:
    """Return the first distinct texts that are short and neither repeat the description nor contain the name."""
    repeated = {"", _letters(item.description), _letters(first_sentence(item.description))}
    name = re.compile(rf"(?<!\w){re.escape(item.name)}(?!\w)", re.IGNORECASE)
    distinct: dict[str, str] = {}
    for text in (" ".join(readable(text).split()) for text in texts):
        is_request = len(text.split()) >= MIN_WORDS and len(text) <= MAX_PARAPHRASE
        if is_request and _letters(text) not in repeated and not name.search(text):
            distinct.setdefault(_letters(text), text)
    return list(distinct.values())[:PER_TOOL]


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
