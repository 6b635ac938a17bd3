"""Topics as everything is filed under them: short, in lower case, the same however somebody wrote them."""

import re
from collections.abc import Iterable

from toolscript.model.text import readable

MAX_TOPIC, MOST_TOPICS = 40, 32

_NO_TOPIC = re.compile(r"[^\w+#./ -]+")


def clean_topic(given: str) -> str:
    """Nothing where it is none."""
    topic = " ".join(_NO_TOPIC.sub(" ", readable(given)).lower().split())
    return topic if len(topic) <= MAX_TOPIC else ""


def clean_topics(given: Iterable[str], most: int = MOST_TOPICS) -> tuple[str, ...]:
    """Each once, in the order they came."""
    return tuple(dict.fromkeys(topic for one in given if (topic := clean_topic(one))))[:most]
