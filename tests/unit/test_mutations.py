"""The faults that a line is given: valid Python that means something else."""

import pytest

from tests.mutations.changes import mutations_of

LINES: list[tuple[str, set[str]]] = [
    ("x = a < b", {"x = a <= b", "pass"}),
    ("x = a not  in b", {"x = a in b", "pass"}),
    ("x = (a) and (b)", {"x = (a) or (b)", "pass"}),
    ("x += 1 - b", {"x += 1 + b", "x += 2 - b", "pass"}),
    ("return 'name'", {"return None", "return 'namex'"}),
    ("return 'A sentence.'", {"return None"}),
    ("return None", set()),
    ("if not a: b()", {"if a: b()", "if not (not a): b()", "if not a: pass"}),
    ('"""A docstring."""', set()),
    ("é = b'x' + c", {"é = b'x' - c", "pass"}),
]


def test_a_line_is_given_each_fault_that_fits_it(subtests: pytest.Subtests) -> None:
    for line, expected in LINES:
        with subtests.test(line=line):
            source = f"def f():\n    {line}\n".encode()
            found = {fault.in_source(source).decode() for fault in mutations_of("f.py", source, 2)}
            assert found == {f"def f():\n    {changed}\n" for changed in expected}
