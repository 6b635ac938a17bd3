"""JSON Schema to types, with references resolved; malformed parts become `unknown`."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from toolscript.gateway.typescript.text import Names, notes_of, pascal_case
from toolscript.gateway.typescript.types import (
    BOOLEAN,
    NEVER,
    NULL,
    NUMBER,
    STRING,
    UNDEFINED,
    UNKNOWN,
    Declaration,
    Fields,
    ListOf,
    Named,
    Node,
    Property,
    TupleOf,
    both,
    either,
    literal_type,
    parts,
    wide_type,
)


@dataclass(frozen=True)
class Target:
    """`path` is canonical, however the reference is spelled."""

    path: tuple[str, ...]
    schema: object


def target_of(reference: object, document: object) -> Target | None:
    """Resolve a local reference; None for a remote or missing target. Nothing is ever fetched."""
    if not isinstance(reference, str):
        return None
    address, _, fragment = reference.partition("#")
    if address and address != _own_address(document):
        return None
    if fragment and not fragment.startswith("/"):
        return None
    path = tuple(map(_step, unquote(fragment).split("/")[1:]))
    return _resolve(path, document)


def _own_address(document: object) -> object:
    own = document.get("$id") if isinstance(document, Mapping) else None
    return own.removesuffix("#") if isinstance(own, str) else None


def _step(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")


def _resolve(path: tuple[str, ...], document: object) -> Target | None:
    node = document
    for step in path:
        if isinstance(node, Mapping) and step in node:
            node = node[step]
        elif isinstance(node, list) and _is_place(step, node):
            node = node[int(step)]
        else:
            return None
    return Target(path, node) if isinstance(node, Mapping | bool) else None


def _is_place(step: str, among: list[object]) -> bool:
    return step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(among)


MAX_DEPTH = 24
MAX_NAMED = 500
MAX_ENUM = 1_000
MAX_TUPLE = 100
# A property's type is repeated beside `[key: string]` when it is this small; nesting would double larger ones.
MAX_REPEATED = 8

_SIMPLE = {"string": STRING, "number": NUMBER, "integer": NUMBER, "boolean": BOOLEAN, "null": NULL}
# Hand-written schemas use the type names of their programming language.
_SPELLED = {
    "str": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
}
_OBJECT_WORDS = ("properties", "patternProperties", "additionalProperties")
_ARRAY_WORDS = ("items", "prefixItems")
_COMBINING = ("$ref", "anyOf", "oneOf", "allOf")

Schema = Mapping[str, object]


@dataclass(frozen=True)
class _Place:
    """Position of a schema: its declaration, its depth, and whether the declaration directly depends on it.

    TypeScript resolves objects, lists and tuples lazily, but not a list or tuple within a tuple.
    """

    declaration: str
    depth: int = 0
    is_direct: bool = True
    in_tuple: bool = False
    in_object: bool = False

    def beside(self) -> "_Place":
        return replace(self, depth=self.depth + 1)

    def inside_object(self) -> "_Place":
        return replace(self, depth=self.depth + 1, is_direct=False, in_object=True)

    def inside_list(self) -> "_Place":
        return replace(self, depth=self.depth + 1, is_direct=self.in_tuple and not self.in_object)

    def inside_tuple(self) -> "_Place":
        return replace(self.inside_list(), in_tuple=True)


class SchemaTypes:
    """The types of one document: the root under a given name, referenced schemas under derived names."""

    def __init__(self, document: object, name: str, names: Names) -> None:
        self._document = document
        self._name = name
        self._names = names
        self._named: dict[tuple[str, ...], str] = {(): name}
        self._waiting: deque[tuple[str, object]] = deque([(name, document)])
        self._direct: dict[str, set[str]] = {}

    def declarations(self) -> Iterator[Declaration]:
        """Yield the declarations, the root first. A queue, not recursion: chains of references may be long."""
        while self._waiting:
            name, schema = self._waiting.popleft()
            notes = () if name == self._name else notes_of(schema)
            yield Declaration(name, self._type(schema, _Place(name)), notes)

    def _type(self, schema: object, place: _Place) -> Node:
        if schema is False or (isinstance(schema, Mapping) and schema.get("not") in (True, {})):
            return NEVER
        if not isinstance(schema, Mapping) or place.depth > MAX_DEPTH:
            return UNKNOWN
        node = both([*self._referred(schema, place), *self._own(schema, place), *self._combined(schema, place)])
        return either([node, NULL]) if schema.get("nullable") is True else node

    def _referred(self, schema: Schema, place: _Place) -> Iterator[Node]:
        if "$ref" not in schema:
            return
        target = target_of(schema["$ref"], self._document)
        name = self._name_of(target) if target else None
        if name and (not place.is_direct or self._add_dependency(place.declaration, name)):
            yield Named(name)

    def _name_of(self, target: Target) -> str | None:
        if target.path not in self._named and len(self._named) < MAX_NAMED:
            name = self._names.unique(self._name + (pascal_case(target.path[-1]) or "Part"))
            self._named[target.path] = name
            self._waiting.append((name, target.schema))
        return self._named.get(target.path)

    def _add_dependency(self, name: str, needed: str) -> bool:
        """Record a direct dependency, unless it would be circular, which TypeScript could not resolve."""
        open_names, seen = [needed], set[str]()
        while open_names:
            current = open_names.pop()
            if current == name:
                return False
            if current not in seen:
                seen.add(current)
                open_names += self._direct.get(current, ())
        self._direct.setdefault(name, set()).add(needed)
        return True

    def _combined(self, schema: Schema, place: _Place) -> Iterator[Node]:
        for word in ("anyOf", "oneOf"):
            if members := _list(schema.get(word)):
                yield either([self._type(member, place.beside()) for member in members])
        for member in _list(schema.get("allOf")):
            yield self._type(member, place.beside())

    def _own(self, schema: Schema, place: _Place) -> Iterator[Node]:
        """Yield the type of the schema's own keywords: a constant, an enum, or a type."""
        values, kinds = _values(schema), _kinds(schema)
        if values:
            yield either(map(literal_type if len(values) <= MAX_ENUM else wide_type, values))
        elif kinds:
            yield either([self._kind(kind, schema, place) for kind in kinds])

    def _kind(self, kind: str, schema: Schema, place: _Place) -> Node:
        match kind:
            case "object":
                return self._object(schema, place.inside_object())
            case "array":
                return self._array(schema, place)
            case _:
                return _SIMPLE.get(kind, UNKNOWN)

    def _object(self, schema: Schema, inside: _Place) -> Node:
        declared = _mapping(schema.get("properties"))
        required = dict.fromkeys(name for name in _list(schema.get("required")) if isinstance(name, str))
        properties = [
            Property(name, self._type(value, inside), name not in required, notes_of(value))
            for name, value in declared.items()
        ]
        properties += [Property(name, UNKNOWN) for name in required if name not in declared]
        return Fields(tuple(properties), self._others(schema, properties, inside))

    def _others(self, schema: Schema, properties: list[Property], inside: _Place) -> Node | None:
        """Return the type of further properties. Only an object without named properties is open by default."""
        additional = schema.get("additionalProperties")
        others = [
            self._type(pattern_schema, inside)
            for pattern_schema in _mapping(schema.get("patternProperties")).values()
        ]
        if additional is True or isinstance(additional, Mapping):
            others.append(self._type(additional, inside))
        if not others:
            return None if properties else NEVER if additional is False else UNKNOWN
        return _widen(either(others), properties)

    def _array(self, schema: Schema, place: _Place) -> Node:
        items, prefix = schema.get("items"), schema.get("prefixItems")
        if isinstance(items, list):
            items, prefix = schema.get("additionalItems"), items
        if (first := _list(prefix)) and len(first) <= MAX_TUPLE:
            return self._tuple(first, items, schema, place.inside_tuple())
        if items is False and not first:
            return TupleOf((), 0, None)
        return ListOf(UNKNOWN if first else self._type(items, place.inside_list()))

    def _tuple(self, first: list[object], items: object, schema: Schema, inside: _Place) -> Node:
        """`minItems` decides how many items are required; further items may follow unless forbidden."""
        maximum, minimum = _count(schema.get("maxItems"), MAX_TUPLE + 1), _count(schema.get("minItems"), 0)
        types = tuple(self._type(item, inside) for item in first[:maximum])
        rest = None if items is False or maximum <= len(first) else self._type(items, inside)
        return TupleOf(types, min(minimum, len(types)), rest)


def _values(schema: Schema) -> list[object]:
    """Return the constant or enum values. An array's enum of non-arrays means its items and is ignored."""
    if "const" in schema:
        return [schema["const"]]
    values = _list(schema.get("enum"))
    is_for_items = schema.get("type") == "array" and not any(isinstance(value, list) for value in values)
    return [] if is_for_items else values


def _kinds(schema: Schema) -> list[str]:
    declared = schema.get("type")
    words = (
        [declared] if isinstance(declared, str) else [word for word in _list(declared) if isinstance(word, str)]
    )
    kinds = [_SPELLED.get(word.lower(), word.lower()) for word in words]
    if not kinds:
        return [*_hints(schema, _OBJECT_WORDS, "object"), *_hints(schema, _ARRAY_WORDS, "array")][:1]
    is_bare = not any(word in schema for word in (*_OBJECT_WORDS, *_ARRAY_WORDS, "required"))
    if is_bare and len(kinds) == 1 and kinds[0] in {"object", "array"} and any(map(schema.get, _COMBINING)):
        return []
    return kinds


def _hints(schema: Schema, words: tuple[str, ...], kind: str) -> list[str]:
    return [kind for word in words if isinstance(schema.get(word), Mapping | list)]


def _widen(others: Node, properties: list[Property]) -> Node:
    """Widen the type of further properties: TypeScript requires every named property to fit it."""
    types = [property_.type for property_ in properties]
    if any(_size(type_) > MAX_REPEATED for type_ in types):
        return UNKNOWN
    return either([others, *types, *([UNDEFINED] if any(property_.optional for property_ in properties) else [])])


def _size(node: Node) -> int:
    return 1 + sum(map(_size, parts(node)))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}


def _count(value: object, otherwise: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return otherwise
    return value
