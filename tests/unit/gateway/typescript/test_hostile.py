"""No text of a server becomes code of the client, and the proof can fail.

`TOOLSCRIPT_TEST_HOSTILE_TOOLS`: how many tools; 5,000 by `python -m tests.unit.gateway.typescript.check_hostile`.
"""

import dataclasses
import os

import pytest

from tests.unit.gateway.typescript.check_hostile import Module, hostile_modules, structure_errors
from tests.unit.gateway.typescript.compiling import errors_of
from tests.unit.gateway.typescript.hostile import Hostile
from tests.unit.gateway.typescript.schema_cases import TEXT, obj
from tests.unit.gateway.typescript.tools import tool
from toolscript.gateway.typescript.markdown import client_usage
from toolscript.gateway.typescript.module import typescript_module

pytestmark = [pytest.mark.requirement("TS-009"), pytest.mark.slow]

TOOLS = int(os.environ.get("TOOLSCRIPT_TEST_HOSTILE_TOOLS", "600"))
PLAIN = Module("plain", typescript_module([tool(obj(a=TEXT), description="Does it.")]), (("s", "t"),))


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return hostile_modules(TOOLS, seed=9)


def test_clients_of_hostile_tools_compile(modules: list[Module]) -> None:
    assert errors_of({module.name: module.text for module in modules}) == []


def test_clients_of_hostile_tools_declare_types_and_call_tools_and_nothing_else(modules: list[Module]) -> None:
    assert structure_errors(modules) == []


def test_examples_for_hostile_tools_compile() -> None:
    hostile, modules = Hostile(seed=10), dict[str, str]()
    for number in range(150):
        item = hostile.item()
        modules[f"client{number}"] = typescript_module([item])
        modules[f"usage{number}"] = client_usage([item]).replace('"toolscript"', f'"./client{number}"')
    assert errors_of(modules) == []


BREAKS = {
    "a statement": ("export const tools", "evil();\nexport const tools"),
    "a statement at the end": ("  return { content } as T;\n}\n", "  return { content } as T;\n}\nevil();\n"),
    "a second statement in a method": ("return callTool", "evil(); return callTool"),
    "a call within the call": ('callTool("/tools/s__t"', 'callTool(evil() ?? "/tools/s__t"'),
    "another path": ('"/tools/s__t"', '"/tools/s__other"'),
    "a path above": ('"/tools/s__t"', '"/tools/../s__t"'),
    "a default that runs": ("= {})", "= evil())"),
    "a computed name": ("async t(", "async [evil()]("),
    "a property that runs": ("  s: {", "  x: evil(),\n  s: {"),
    "a prototype": ("  s: {", "  __proto__: {\n"),
    "a type of elsewhere": ("a?: string", 'a?: import("evil").T'),
    "a type that asks for a value": ("a?: string", "a?: typeof evil"),
    "a type that is not declared": ("a?: string", "a?: Evil"),
    "a method in an interface": ("a?: string", "a?(): string"),
    "an import": ("export interface", 'import "evil";\nexport interface'),
    "an export": ("export interface", 'export * from "evil";\nexport interface'),
    "an order to the compiler": ("export interface", "// @ts-expect-error\nexport interface"),
    "an order for the file": ("// Auto-generated", "// @ts-nocheck\n// Auto-generated"),
    "a reference": ("// Auto-generated", '/// <reference path="evil" />\n// Auto-generated'),
    "a comment that is left early": ("Does it.", "Does it. */ evil() {} /*"),
}


def broken(number: int) -> Module:
    pattern, put = list(BREAKS.values())[number]
    assert pattern in PLAIN.text
    return dataclasses.replace(PLAIN, name=f"broken{number}", text=PLAIN.text.replace(pattern, put, 1))


@pytest.fixture(scope="module")
def proof() -> list[str]:
    """Return the proof's findings for an unbroken client, and for each way to break it."""
    return structure_errors([PLAIN, *map(broken, range(len(BREAKS)))])


@pytest.mark.parametrize("number", range(len(BREAKS)), ids=list(BREAKS))
def test_the_proof_finds(number: int, proof: list[str]) -> None:
    assert [line for line in proof if line.startswith(f"broken{number}: ")] != []


def test_the_proof_finds_nothing_in_an_unbroken_client(proof: list[str]) -> None:
    assert len(proof) == len(BREAKS)
