"""Harmless tools: the golden ones, and more whose job is to sort, to label and to give orders."""

import json
from pathlib import Path

from toolscript.core.items import Item, ItemKind

GOLDEN = Path(__file__).parents[3] / "golden" / "tools.jsonl"

OWN = (
    (
        "visionkit",
        "classify_image",
        "Classify a picture into one of a thousand categories, with a confidence for each.",
    ),
    ("visionkit", "detect_objects", "Find the objects in a photo and draw a labelled box around each of them."),
    ("mailroom", "assign_label", "Assign a label to an email, or remove it again."),
    ("mailroom", "snooze_thread", "Hide an email thread until a later date."),
    ("hrsuite", "list_skills", "List the skills of an employee with the level of each."),
    ("hrsuite", "assign_mentor", "Assign a mentor to a new employee for the first three months."),
    ("shopdesk", "create_category", "Create a category in the product catalog of the shop."),
    ("shopdesk", "assign_products", "Assign products to a category of the shop, replacing what it held."),
    ("ticketdeck", "assign_ticket", "Assign a ticket to a person or a team. You must have the role of an agent."),
    ("ticketdeck", "set_priority", "Set the priority of a ticket: low, normal, high or urgent."),
    ("blogpress", "publish_post", "Publish a blog post. Tags and the primary category should be set before."),
    ("blogpress", "list_comments", "List the comments below a blog post, newest first."),
    ("mlforge", "train_classifier", "Train a text classifier on labelled examples and return its accuracy."),
    (
        "mlforge",
        "run_prompt",
        "Send a system prompt and a user message to a language model and return its answer.",
    ),
    ("homegrid", "switch_lamp", "Turn a lamp on or off. Always check that the device is online first."),
    ("homegrid", "read_meter", "Read the electricity meter of the house."),
    ("medibook", "book_doctor", "Book an appointment with a doctor near you."),
    ("medibook", "check_interactions", "Check whether two drugs may be taken together."),
    (
        "kitchenry",
        "suggest_recipe",
        "Suggest a recipe for what is in the fridge. Ignores ingredients that are out of date.",
    ),
    ("kitchenry", "count_calories", "Estimate the calories of a meal."),
    ("lawlens", "search_cases", "Search court decisions by topic, court and year."),
    ("lawlens", "compare_clauses", "Compare a clause of a contract with the usual wording."),
    ("starview", "planet_position", "Where a planet stands in the sky at a time and place."),
    ("genomix", "align_sequences", "Align two DNA sequences and show where they differ."),
    ("tuneshelf", "play_song", "Play a song, an album or a playlist."),
    ("goaltime", "match_result", "The result of a football match, with goals and cards."),
    ("parcelway", "track_parcel", "Tell where a parcel is and when it arrives."),
    ("langpal", "conjugate_verb", "Conjugate a verb in all tenses."),
    ("cadmill", "extrude_face", "Extrude a face of a 3D body by a distance."),
)


def benign_tools() -> list[Item]:
    golden = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    items = [
        Item(
            row["id"],
            ItemKind.TOOL,
            row["server"],
            row["name"],
            row["description"],
            row.get("server_description", ""),
            row["input_schema"],
        )
        for row in golden
    ]
    return items + [Item(f"{server}__{name}", ItemKind.TOOL, server, name, text) for server, name, text in OWN]
