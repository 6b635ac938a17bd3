"""Types of schemas, checked by the compiler. All cases are compiled in one run."""

from collections.abc import Mapping

import pytest

from tests.unit.gateway.typescript.compiling import errors_by_module
from tests.unit.gateway.typescript.schema_cases import CASES, NUMBER, TEXT, Case, obj
from tests.unit.gateway.typescript.tools import tool
from toolscript.gateway.typescript.module import typescript_module

pytestmark = [pytest.mark.requirement("TS-009"), pytest.mark.slow]


def uses(module: str, case: Case) -> str:
    """Return a module that compiles only if the client accepts and refuses the values of the case."""
    lines = [f'import {{ tools }} from "./{module}";']
    lines += [f"tools.s.t({{ v: {value} }});" for value in case.takes]
    lines += [f"// @ts-expect-error\ntools.s.t({{ v: {value} }});" for value in case.refuses]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def compiled() -> Mapping[str, list[str]]:
    modules = {}
    for number, case in enumerate(CASES):
        for form, compact in (("full", False), ("compact", True)):
            modules[f"{form}{number}"] = typescript_module([tool(case.document)], compact=compact)
            modules[f"{form}{number}_used"] = uses(f"{form}{number}", case)
    return errors_by_module(modules)


def test_a_schema_accepts_and_refuses_the_values_of_its_case(
    compiled: Mapping[str, list[str]], subtests: pytest.Subtests
) -> None:
    for form in ["full", "compact"]:
        for number in range(len(CASES)):
            with subtests.test(form=form, number=number):
                assert compiled[f"{form}{number}"] + compiled[f"{form}{number}_used"] == []


def test_the_sentences_are_all_different() -> None:
    assert len({case.sentence for case in CASES}) == len(CASES)


def wide(count: int, prefix: str) -> dict[str, object]:
    return {"anyOf": [obj((f"{prefix}{n}",), **{f"{prefix}{n}": TEXT}) for n in range(count)]}


def chain(length: int) -> dict[str, object]:
    steps = {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}, TEXT]} for n in range(length)}
    return obj(v={"$ref": "#/$defs/D0"}) | {"$defs": steps}


def nested(depth: int) -> object:
    schema: object = TEXT
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "additionalProperties": NUMBER}
    return schema


def heavy(side: str) -> dict[str, object]:
    """Return a schema with many properties that all reference it."""
    return obj(**{f"p{n}": {"$ref": f"#/$defs/{side}"} for n in range(300)})


EXTREME = {
    "a thousand intersections of what is heavy": {
        "$defs": {"A": heavy("A"), "B": heavy("B")},
        **obj(
            **{
                f"v{n}": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, obj(**{f"x{n}": TEXT})]}
                for n in range(1000)
            }
        ),
    },
    "alternatives that multiply": {"allOf": [wide(60, "a"), wide(60, "b"), wide(60, "c"), wide(60, "d")]},
    "alternatives that multiply within a property": {
        "allOf": [obj(p=wide(400, "a")), obj(p=wide(400, "b"))],
    },
    "alternatives that multiply behind references": {
        "$defs": {"A": wide(400, "a"), "B": wide(400, "b"), "C": {"allOf": [{"$ref": "#/$defs/A"}, obj(x=TEXT)]}},
        "allOf": [{"$ref": "#/$defs/C"}, {"$ref": "#/$defs/B"}],
    },
    "a chain of ten thousand references": chain(10_000),
    "two hundred levels that double": nested(200),
    "ten thousand properties": obj(**{f"p{n}": TEXT for n in range(10_000)}),
    "a tuple of ten thousand": {"type": "array", "prefixItems": [TEXT] * 10_000},
    "a reference chain that multiplies": {
        "$defs": {f"D{n}": {"allOf": [{"$ref": f"#/$defs/D{n + 1}"}, wide(9, f"x{n}_")]} for n in range(60)},
        "$ref": "#/$defs/D0",
    },
}


@pytest.fixture(scope="module")
def extremes() -> Mapping[str, str]:
    return {
        f"extreme{number}": typescript_module([tool(schema, output=schema)])
        for number, schema in enumerate(EXTREME.values())
    }


@pytest.fixture(scope="module")
def compiled_extremes(extremes: Mapping[str, str]) -> Mapping[str, list[str]]:
    return errors_by_module(extremes)


@pytest.mark.parametrize("number", range(len(EXTREME)), ids=list(EXTREME))
def test_a_schema_of_any_size_compiles(number: int, compiled_extremes: Mapping[str, list[str]]) -> None:
    assert compiled_extremes[f"extreme{number}"] == []


def test_a_schema_of_any_size_gives_a_module_of_its_own_size(extremes: Mapping[str, str]) -> None:
    assert max(len(text) for text in extremes.values()) < 1_000_000


def test_the_compiler_refuses_what_does_not_multiply_out() -> None:
    """The reason to give up wide intersections: one server could make the whole module fail to compile."""
    left, right = (" | ".join(f"{{ {side}{n}: string }}" for n in range(400)) for side in "ab")
    errors = errors_by_module({"wide": f"export type Wide = ({left}) & ({right});\n"})
    assert "TS2590" in "".join(errors["wide"])
