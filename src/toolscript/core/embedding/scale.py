"""What the cosines of a model mean: measured on texts that have nothing to do with any catalog.

Models differ: unrelated texts have a cosine of .05 with one and of .75 with another. Requests for forty tools tell
the level and the spread of unrelated texts, and whether the model finds the right tool for them at all. Some of
the requests are tried in other languages, too, for the same English tools.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from toolscript.core.atomic_files import read_json, write_json_atomically
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.static_table import BUILTIN
from toolscript.core.errors import ToolscriptError
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.model import IndexCard, Matrix, ModelCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.verdict import PROBED_LANGUAGES, CosineScale

# With a smaller share of requests whose own tool is the nearest, a model cannot judge what fits.
MIN_RIGHT = 0.6
VERSION = 2
# Sums of word vectors rise with every common word: the built-in model needs more to be convinced.
OFFSETS = {BUILTIN: -0.9}
# Parts of the names of models that are known to be multilingual; others are tried.
MULTILINGUAL = (
    "multilingual",
    "bge-m3",
    "distiluse",
    "embeddinggemma",
    "jina-embeddings-v3",
    "labse",
    "nomic-embed-text-v2",
    "qwen3-embedding",
    "text-embedding-3",
)

logger = logging.getLogger(__name__)

# A request, and a tool that serves it: server, name, description.
PROBES = (
    ("dim the lights in the living room", "home", "set_brightness", "Sets the brightness of a lamp in a room."),
    (
        "how much is 50 dollars in yen",
        "currency",
        "convert_amount",
        "Converts an amount from one currency to another at today's rate.",
    ),
    (
        "find me a recipe with chickpeas",
        "recipes",
        "search_by_ingredient",
        "Searches recipes by the ingredients they contain.",
    ),
    (
        "book a table for two tonight",
        "restaurants",
        "reserve_table",
        "Reserves a table at a restaurant for a date and a number of guests.",
    ),
    (
        "what's the weather in Oslo tomorrow",
        "weather",
        "get_forecast",
        "Returns the weather forecast of a city for the next days.",
    ),
    ("play some jazz", "music", "play", "Starts playing music of an artist, album or genre."),
    (
        "translate this letter into Spanish",
        "translator",
        "translate_text",
        "Translates a text from one language into another.",
    ),
    (
        "remind me to call mum at five",
        "reminders",
        "create_reminder",
        "Creates a reminder that notifies at a given time.",
    ),
    ("show my unread mail", "mail", "list_unread", "Lists the messages of the inbox that have not been read."),
    (
        "cancel my gym membership",
        "subscriptions",
        "cancel_subscription",
        "Ends the subscription of a member at the end of the period.",
    ),
    (
        "when does the next train to Lyon leave",
        "railway",
        "next_departures",
        "Returns the departures of trains between two stations.",
    ),
    ("resize this photo to 800 pixels", "images", "resize_image", "Scales an image to a given width and height."),
    (
        "who won the game last night",
        "sports",
        "get_results",
        "Returns the results of sports matches by team and date.",
    ),
    ("pay the electricity bill", "bank", "transfer_money", "Transfers money from an account to a payee."),
    (
        "how many steps did I walk today",
        "fitness",
        "get_step_count",
        "Returns the step count recorded by a fitness tracker for a day.",
    ),
    (
        "look up the meaning of ephemeral",
        "dictionary",
        "define_word",
        "Returns the definition of a word from a dictionary.",
    ),
    ("turn off the alarm for tomorrow", "clock", "disable_alarm", "Disables an alarm of the clock."),
    ("find a dentist near me", "health", "find_clinic", "Searches doctors and clinics around a location."),
    (
        "track my parcel",
        "parcels",
        "track_shipment",
        "Returns the delivery status of a shipment by its tracking number.",
    ),
    (
        "compress these files into an archive",
        "archives",
        "create_zip",
        "Creates a zip archive from a list of files.",
    ),
    (
        "what stocks fell the most today",
        "stocks",
        "list_losers",
        "Lists the shares with the largest losses on the stock market.",
    ),
    ("draw a logo with a fox", "art", "generate_image", "Generates an image from a description in words."),
    ("transcribe the interview", "speech", "transcribe_audio", "Converts speech in an audio recording to text."),
    ("hire a car for the weekend", "cars", "search_rentals", "Searches rental cars by place and dates."),
    (
        "water the garden for ten minutes",
        "garden",
        "open_valve",
        "Opens a valve of the irrigation for a number of minutes.",
    ),
    (
        "check my homework for spelling mistakes",
        "writing",
        "check_spelling",
        "Finds errors of spelling and grammar in a text.",
    ),
    (
        "set up a meeting with the sales team",
        "calendar",
        "create_event",
        "Creates an event in a calendar and invites attendees.",
    ),
    ("what films are on tonight", "cinema", "list_showings", "Lists the showings of cinemas by day and place."),
    ("add milk to the shopping list", "shopping", "add_to_list", "Adds an entry to a list of things to buy."),
    ("is this mushroom edible", "nature", "identify_plant", "Identifies a plant or fungus in a photo."),
    ("order more printer paper", "office", "place_order", "Places an order for office supplies."),
    (
        "how long is the drive to Berlin",
        "maps",
        "compute_route",
        "Computes the route and the travel time between two places.",
    ),
    ("scan this for viruses", "security", "scan_file", "Checks a file for malware."),
    (
        "raise the heating by two degrees",
        "heating",
        "set_temperature",
        "Changes the target temperature of a thermostat.",
    ),
    ("what's on my to-do list", "tasks", "list_open_tasks", "Returns the open tasks of a user."),
    ("file my tax return", "taxes", "submit_declaration", "Submits a declaration of income to the tax office."),
    ("tune my guitar", "tuner", "detect_pitch", "Detects the pitch of a tone and compares it with a string's."),
    ("post this picture to my followers", "social", "publish_photo", "Publishes a photo on a social network."),
    ("solve x squared plus three x equals ten", "algebra", "solve_equation", "Solves an equation for a variable."),
    (
        "where can I charge my car",
        "vehicles",
        "list_charging_stations",
        "Lists charging stations for electric vehicles on a map.",
    ),
)

# Requests of PROBES in other languages, by the name of the tool.
FOREIGN_PROBES: Mapping[str, Mapping[str, str]] = {
    "de": {
        "set_brightness": "mach das Licht im Wohnzimmer etwas dunkler",
        "search_by_ingredient": "was kann ich mit Kichererbsen kochen",
        "list_unread": "zeig mir die ungelesenen Nachrichten",
        "next_departures": "wann fährt der nächste Zug nach Lyon",
        "check_spelling": "prüfe meine Hausaufgaben auf Rechtschreibfehler",
        "set_temperature": "dreh die Heizung zwei Grad höher",
    },
    "es": {
        "set_brightness": "baja un poco la luz de la sala de estar",
        "search_by_ingredient": "qué puedo cocinar con garbanzos",
        "list_unread": "enséñame los correos sin leer",
        "next_departures": "cuándo sale el próximo tren a Lyon",
        "check_spelling": "revisa las faltas de ortografía de mis deberes",
        "set_temperature": "sube la calefacción dos grados",
    },
    "ru": {
        "set_brightness": "сделай свет в гостиной потише",
        "search_by_ingredient": "что можно приготовить из нута",
        "list_unread": "покажи непрочитанные письма",
        "next_departures": "когда уходит следующий поезд в Лион",
        "check_spelling": "проверь моё домашнее задание на орфографические ошибки",
        "set_temperature": "сделай отопление на два градуса теплее",
    },
    "zh": {
        "set_brightness": "把客厅的灯调暗一点",
        "search_by_ingredient": "用鹰嘴豆可以做什么菜",
        "list_unread": "显示我的未读邮件",
        "next_departures": "下一班去里昂的火车几点开",
        "check_spelling": "检查我的作业有没有错别字",
        "set_temperature": "把暖气调高两度",
    },
}


async def measure_scale(embedder: Embedder) -> CosineScale:
    """Embed the probes, and return what their cosines tell of the model."""
    requests = np.array(await asyncio.gather(*(embedder.embed_query(request) for request, *_ in PROBES)))
    items = [Item(f"{server}__{name}", ItemKind.TOOL, server, name, text) for _, server, name, text in PROBES]
    tools = await embed_items(embedder, items)
    cosines = requests @ tools.T
    unrelated = cosines[~np.eye(len(PROBES), dtype=bool)]
    right = float((cosines.argmax(axis=1) == np.arange(len(PROBES))).mean())
    return CosineScale(
        float(unrelated.mean()),
        float(unrelated.std()),
        is_trusted=right >= MIN_RIGHT,
        offset=OFFSETS.get(embedder.model.name, 0.0),
        centre=tuple(np.round(tools.mean(axis=0), 5).tolist()),
        languages=await _languages_of(embedder, tools),
    )


async def _languages_of(embedder: Embedder, tools: Matrix) -> list[str]:
    """Return the languages of PROBED_LANGUAGES in which the model finds the right one of these tools of PROBES."""
    if any(part in embedder.model.name.casefold() for part in MULTILINGUAL):
        return [*PROBED_LANGUAGES]
    names = [name for _, _, name, _ in PROBES]
    known = []
    for language in PROBED_LANGUAGES:
        probes = FOREIGN_PROBES[language]
        requests = np.array(await asyncio.gather(*map(embedder.embed_query, probes.values())))
        nearest = [names[row] for row in (requests @ tools.T).argmax(axis=1)]
        right = sum(map(str.__eq__, nearest, probes))
        known += [language] if right >= MIN_RIGHT * len(probes) else []
    return known


async def scale_of(embedder: Embedder, file: Path | None) -> CosineScale | None:
    """Return the scale of a model, from the file if it has been measured before; None if it cannot be had."""
    known = _read(file) if file else {}
    key = f"{IndexCard(embedder.model).fingerprint}-{VERSION}"
    if key in known:
        return known[key]
    try:
        scale = await measure_scale(embedder)
    except ToolscriptError as error:
        logger.warning("cannot check the model", extra={"part": "model", "reason": error.message})
        return None
    if not scale.is_trusted:
        logger.warning(
            "the model %s does not tell related texts from unrelated ones: whether anything fits is judged without"
            " it",
            embedder.model.name,
        )
    if file:
        await asyncio.to_thread(_write, file, known | {key: scale})
    return scale


def scale_from_json(data: Mapping[str, Any]) -> CosineScale:
    return CosineScale(**{**data, "centre": tuple(map(float, data["centre"]))})


class ModelScales:
    """The scales of the models of a process: each is measured once, and again if that failed."""

    def __init__(self) -> None:
        self._known: dict[ModelCard, CosineScale] = {}

    async def of(self, embedder: Embedder) -> CosineScale | None:
        if embedder.model not in self._known and (scale := await scale_of(embedder, None)):
            self._known[embedder.model] = scale
        return self._known.get(embedder.model)


def _read(file: Path) -> dict[str, CosineScale]:
    try:
        data = read_json(file)
        return {str(key): scale_from_json(scale) for key, scale in data.items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return {}


def _write(file: Path, scales: Mapping[str, CosineScale]) -> None:
    try:
        write_json_atomically(file, {key: asdict(scale) for key, scale in scales.items()})
    except OSError as error:
        logger.warning("cannot write %s", file.name, extra={"reason": error.strerror})
