"""Three hundred notes on one subject, the keeping of bees, and queries that they answer and that they do not."""

from itertools import islice, product

PLACES = ("an orchard", "a heath", "a roof in the town", "a mountain meadow", "the edge of a forest")
TIMES = ("In early spring", "When the lime trees blossom", "After the last harvest", "In the first frost")
FACTS = (
    ("Swarming", "the colony raises a second queen and half of the bees leave the hive with the old one"),
    ("Feeding", "the keeper gives sugar syrup, so that the colony has stores for the winter"),
    ("Mites", "the varroa mite is counted on a board under the hive and treated with oxalic acid"),
    ("Honey", "frames are taken out when two thirds of the cells are capped with wax, and then spun"),
    ("Wax", "old combs are melted in the sun, strained through linen and poured into blocks"),
    ("Queens", "a marked queen is introduced in a small cage, which the bees open within three days"),
    ("Damp", "the floor of the hive stays open, because bees survive cold better than wet"),
    ("Robbing", "the entrance is narrowed, so that guards keep strange bees from stealing the stores"),
    ("Pollen", "a trap at the entrance brushes pollen off the legs of the foragers"),
    ("Brood", "gaps in the brood show that the queen is old, or that the larvae are ill"),
    ("Smoke", "cool smoke of dry grass keeps the bees calm while the hive is open"),
    ("Drones", "drones are driven out of the hive when there is little nectar left"),
    ("Water", "a shallow dish with stones lets the foragers drink without drowning"),
    ("Scales", "a balance under the hive tells from afar how much nectar comes in"),
    ("Transport", "hives are moved at night with closed entrances and a net on top"),
)

# The first is answered by no note on bees, the second is one of few words.
ESPRESSO = "how do I reset my espresso machine"
UNANSWERED = (ESPRESSO, "espresso machine", "cheap flights to Rome", "how do I change a flat tyre", "asdf qwer")
ANSWERED = (
    "what do bees eat in the cold months",
    "how do I treat varroa mites",
    "swarming",
    "when is honey ripe for the harvest",
    "moving a hive to another place",
)


def hive_notes(count: int = 300) -> list[tuple[str, str]]:
    """Return titles and texts; no two are equal."""
    notes = product(PLACES, TIMES, FACTS)
    return [
        (f"{title} in {place}", f"{time}, where hives stand in {place}, {fact}.")
        for place, time, (title, fact) in islice(notes, count)
    ]
