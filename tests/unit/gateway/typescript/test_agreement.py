"""json-schema-to-typescript makes the same types of the same schemas.

More real schemas: `python -m tests.unit.gateway.typescript.check_agreement FILE --count 8000`.
"""

import pytest

from tests.unit.gateway.typescript.check_agreement import disagreements, sampled
from tests.unit.gateway.typescript.schema_cases import CASES, TEXT, obj
from tests.unit.gateway.typescript.tools import CATALOG

pytestmark = [pytest.mark.requirement("TS-009"), pytest.mark.slow]

DIFFERENT = {
    "an empty enum says nothing": "theirs is `never`: no tool could be called",
    "a number too large to be exact is any number": "theirs is another number than the schema's",
    "an enum of thousands is its type": "theirs has every value; ours has to fit a model's context",
    "not anything is nothing": "theirs does not read `not`",
    "what is required need not be described": "theirs leaves it out, and the tool refuses the call",
    "an object may be closed": "theirs is `{}`, which takes anything",
    "a list that allows no item is empty": "theirs is `never[]`, which has the same values",
    "a tuple requires what minItems requires": "theirs does not read `prefixItems`",
    "a tuple ends where maxItems ends": "theirs does not read `prefixItems`",
    "more may follow a tuple": "theirs does not read `prefixItems`",
    "lists at the end of a tuple may hold the tuple": "theirs does not read `prefixItems`",
    "a tuple in a tuple may hold the first": "theirs does not read `prefixItems`",
    "large properties beside others compile": "theirs writes nested types twice, and doubles with each level",
    "allOf is an intersection": "ours is one object with both properties, which has the same values",
    "required in a sentence requires nothing": "theirs looks for the name within the sentence",
    "a schema that is a string is anything": "theirs takes it for a value",
}
NOT_MADE = {
    "a reference to elsewhere is anything": "theirs fetches it",
    "a reference to nowhere is anything": "theirs stops",
    "a reference to itself is anything": "theirs stops",
    "a circle of references is anything": "theirs stops",
    "alternatives that are none say nothing": "theirs stops",
    "all of itself and more is the more": "theirs does not compile",
    "a circle that opens late is no circle": "theirs does not compile",
}
DOCUMENTS = {f"case{number}": case.document for number, case in enumerate(CASES) if case.sentence not in NOT_MADE}


@pytest.mark.skipif(not CATALOG.exists(), reason="the catalog of real tools is not on this machine")
def test_a_hundred_real_schemas_have_the_same_type_as_with_another_program() -> None:
    assert disagreements(sampled(CATALOG, 100, seed=9)) == []


def test_the_keywords_of_json_schema_have_the_same_type_except_these() -> None:
    differing = {CASES[int(name.removeprefix("case"))].sentence for name in disagreements(DOCUMENTS)}
    assert differing == set(DIFFERENT)


def test_a_difference_in_a_single_question_mark_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    optional, required = obj(a=TEXT), obj(("a",), a=TEXT)
    monkeypatch.setattr("tests.unit.gateway.typescript.check_agreement.adapt_schema", lambda _: optional)
    assert disagreements({"one": required, "other": optional}) == ["one"]
