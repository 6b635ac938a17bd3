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

# True only for identical types: mutual assignability is too weak, as `{}` fits an object of optional properties.
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


def adapt_schema(schema: object) -> object:
    """Adapt a schema to the other program, where conventions differ:

    they name a type after its title; we ignore it, as names derive from the tool's;
    an object without properties is `{}` for them, and open for us, as in JSON Schema;
    a schema without a type is an object for them, and unknown for us, as in JSON Schema;
    an unknown type, such as `str`, is an object for them, and the intended type for us.
    """
    if not isinstance(schema, dict):
        return schema
    adapted = {word: _part(word, value) for word, value in schema.items() if word != "title"}
    kind = adapted.get("type")
    if isinstance(kind, str):
        adapted["type"] = SPELLED.get(kind.lower(), kind.lower())
    is_other = "type" in adapted and not isinstance(kind, list) and adapted["type"] not in KNOWN
    if is_other or not SAYS_A_TYPE & adapted.keys():
        return {"tsType": "unknown"}
    if adapted.get("type") == "object" and not adapted.get("properties") and "additionalProperties" not in adapted:
        adapted["additionalProperties"] = True
    return adapted


def _part(word: str, value: object) -> object:
    if word in {"properties", "$defs", "patternProperties"} and isinstance(value, dict):
        return {name: adapt_schema(schema) for name, schema in value.items()}
    if word in {"anyOf", "oneOf", "allOf"} and isinstance(value, list):
        return [adapt_schema(schema) for schema in value]
    return adapt_schema(value) if word in {"items", "additionalProperties"} else value


def disagreements(schemas: Mapping[str, object]) -> list[str]:
    """Return the names of the schemas with different types."""
    adapted = {name: adapt_schema(schema) for name, schema in schemas.items()}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(adapted, file)
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
    errors = errors_by_module(modules)
    broken = [line for name, lines in errors.items() if not name.endswith("_same") for line in lines]
    if broken:
        raise RuntimeError(f"does not compile: {broken[0]}")
    return [name for name in schemas if errors[f"{name}_same"]]


def sampled(path: Path, count: int, seed: int) -> dict[str, object]:
    """Return real schemas with properties, by line number."""
    items = list(catalog_tools(path))
    with_properties = [line for line, item in enumerate(items) if (item.input_schema or {}).get("properties")]
    lines = sorted(random.Random(seed).sample(with_properties, count))
    return {f"line{line + 1}": items[line].input_schema for line in lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=9)
    arguments = parser.parse_args()
    schemas = sampled(arguments.file, arguments.count, arguments.seed)
    differing = disagreements(schemas)
    for name in differing[:20]:
        sys.stdout.write(f"{name}: {json.dumps(schemas[name])[:600]}\n")
    sys.stdout.write(
        f"{len(schemas) - len(differing)} of {len(schemas)} schemas have the same type, seed {arguments.seed}\n"
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
