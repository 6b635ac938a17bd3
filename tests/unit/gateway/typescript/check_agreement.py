"""Compare with json-schema-to-typescript: `python -m tests.unit.gateway.typescript.check_agreement FILE`."""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.npm_tools import run_check
from tests.unit.gateway.typescript.compiling import errors_by_module
from tests.unit.gateway.typescript.tools import catalog_tools, tool
from toolscript.gateway.typescript.module import typescript_module

# True for the same type only: each can be given for the other is too little, as `{}` fits what is all optional.
SAME = "type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;"


SPELLED = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "long": "integer",
    "double": "number",
}
KNOWN = ("string", "number", "integer", "boolean", "null", "object", "array")
SAYS_A_TYPE = {"type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not"}


def said_our_way(schema: object) -> object:
    """A schema for them that has the meaning we give to ours, where the two differ by habit:

    a title is the name of a type with them, and nothing with us, as names are made from the tool's;
    an object that names no property is `{}` with them, and open with us, as JSON Schema has it;
    a schema without a type is an object with them, and unknown with us, as JSON Schema has it;
    a type that JSON Schema does not have, such as `str`, is an object with them, and with us what it means.
    """
    if not isinstance(schema, dict):
        return schema
    said = {word: _part(word, one) for word, one in schema.items() if word != "title"}
    kind = said.get("type")
    if isinstance(kind, str):
        said["type"] = SPELLED.get(kind.lower(), kind.lower())
    is_other = "type" in said and not isinstance(kind, list) and said["type"] not in KNOWN
    if is_other or not SAYS_A_TYPE & said.keys():
        return {"tsType": "unknown"}
    if said.get("type") == "object" and not said.get("properties") and "additionalProperties" not in said:
        said["additionalProperties"] = True
    return said


def _part(word: str, one: object) -> object:
    if word in {"properties", "$defs", "patternProperties"} and isinstance(one, dict):
        return {name: said_our_way(schema) for name, schema in one.items()}
    if word in {"anyOf", "oneOf", "allOf"} and isinstance(one, list):
        return [said_our_way(schema) for schema in one]
    return said_our_way(one) if word in {"items", "additionalProperties"} else one


def disagreements(schemas: Mapping[str, object]) -> list[str]:
    """The names of the schemas of which ours and theirs make different types."""
    given = {name: said_our_way(schema) for name, schema in schemas.items()}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(given, file)
        file.flush()
        theirs: dict[str, str] = json.loads(run_check("their_types.mjs", file.name))
    modules = dict[str, str]()
    for name, schema in schemas.items():
        modules |= {f"{name}_ours": typescript_module([tool(schema)]), f"{name}_theirs": theirs[name]}
        modules[f"{name}_same"] = (
            f'import type {{ STParams as Ours }} from "./{name}_ours";\n'
            f'import type {{ Theirs }} from "./{name}_theirs";\n'
            f"{SAME}\nexport const same: Same<Ours, Theirs> = true;\n"
        )
    found = errors_by_module(modules)
    broken = [line for name, lines in found.items() if not name.endswith("_same") for line in lines]
    if broken:
        raise RuntimeError(f"does not compile: {broken[0]}")
    return [name for name in schemas if found[f"{name}_same"]]


def sampled(path: Path, count: int, seed: int) -> dict[str, object]:
    """Real schemas by the number of their line, of those that name a property."""
    items = list(catalog_tools(path))
    telling = [line for line, one in enumerate(items) if (one.input_schema or {}).get("properties")]
    lines = sorted(random.Random(seed).sample(telling, count))
    return {f"line{line + 1}": items[line].input_schema for line in lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=9)
    given = parser.parse_args()
    schemas = sampled(given.file, given.count, given.seed)
    found = disagreements(schemas)
    for name in found[:20]:
        sys.stdout.write(f"{name}: {json.dumps(schemas[name])[:600]}\n")
    sys.stdout.write(
        f"{len(schemas) - len(found)} of {len(schemas)} schemas have the same type, seed {given.seed}\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
