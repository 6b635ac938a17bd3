"""The bounded cache with a time to live: many keys at once are read as each of them is."""

from toolscript.core.retrieval.cache import TtlCache


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_many_keys_are_read_as_one_by_one_without_absent_and_expired_ones() -> None:
    clock = Clock()
    cache = TtlCache[int, str](10, 10.0, clock)
    cache.put({1: "one", 2: "two"})
    clock.seconds += 11
    cache.put({3: "three", 4: "four"})
    keys = (4, 1, 9, 3)
    assert cache.get_all(keys) == {4: "four", 3: "three"}
    assert cache.get_all(keys) == {key: value for key in keys if (value := cache.get(key)) is not None}


def test_keys_that_were_read_together_are_kept_longest() -> None:
    cache = TtlCache[int, str](3, 10.0, Clock())
    cache.put({1: "one", 2: "two", 3: "three"})
    cache.get_all((1, 2))
    cache.put({4: "four"})
    assert cache.get_all((1, 2, 3, 4)) == {1: "one", 2: "two", 4: "four"}
