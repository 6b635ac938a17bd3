"""Cases of each JSON Schema keyword: values that the client accepts and refuses."""

from dataclasses import dataclass, field

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def obj(required: tuple[str, ...] = (), /, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


@dataclass(frozen=True)
class Case:
    """`schema` is the schema of the required property `v`; the values are TypeScript."""

    sentence: str
    schema: object
    takes: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    definitions: dict[str, object] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, object]:
        return {**obj(("v",), v=self.schema), "$defs": self.definitions}


TREE = obj(("name",), name=TEXT, children={"type": "array", "items": {"$ref": "#/$defs/Tree"}})
PAIR = {"type": "array", "prefixItems": [TEXT], "minItems": 1}
JSON_LIKE = {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]}

SIMPLE = [
    Case("a string is a string", TEXT, ('"x"',), ("1", "null")),
    Case("an integer is a number", {"type": "integer"}, ("1", "1.5"), ('"1"',)),
    Case("null is null", {"type": "null"}, ("null",), ("undefined", "0")),
    Case("a list of types is a union", {"type": ["boolean", "null"]}, ("true", "null"), ('"x"', "0")),
    Case(
        "an enum is its values",
        {"enum": ["a", 1, None, True, -2]},
        ('"a"', "1", "null", "true", "-2"),
        ('"b"', "false"),
    ),
    Case("a const is its value", {"const": {"a": [1]}}, ("{ a: [1] }",), ("{ a: [2] }", "{ a: [1, 1] }", "{}")),
    Case("nullable adds null", {**TEXT, "nullable": True}, ('"x"', "null"), ("1",)),
    Case("an empty enum says nothing", {**TEXT, "enum": []}, ('"x"',), ("1",)),
    Case("a number too large to be exact is any number", {"const": 2**60}, ("1",), ('"x"',)),
    Case("an enum of thousands is its type", {"enum": [f"e{n}" for n in range(3000)]}, ('"other"',), ("1",)),
    Case("an enum of hundreds is its values", {"enum": [f"e{n}" for n in range(300)]}, ('"e299"',), ('"e300"',)),
    Case("a schema that is true is anything", True, ("1", "null")),
    Case("a schema that is false is nothing", False, (), ("1", "null")),
    Case("not anything is nothing", {"not": {}}, (), ("1",)),
    Case("not something is not looked at", {**TEXT, "not": {"const": "a"}}, ('"a"', '"b"'), ("1",)),
]
OBJECTS = [
    Case(
        "a property is required when it says so",
        obj(("a",), a=TEXT, b=TEXT),
        ('{ a: "x" }',),
        ('{ b: "x" }', "{}"),
    ),
    Case(
        "objects nest",
        obj(("a",), a=obj(("b",), b=NUMBER)),
        ("{ a: { b: 1 } }",),
        ('{ a: { b: "x" } }', "{ a: {} }"),
    ),
    Case("what is required need not be described", {"type": "object", "required": ["a"]}, ("{ a: 1 }",), ("{}",)),
    Case("an object that names no property is open", {"type": "object"}, ("{}", "{ a: 1 }"), ('"x"', "null")),
    Case("an object may be closed", {"type": "object", "additionalProperties": False}, ("{}",), ("{ a: 1 }",)),
    Case("named properties are all there are", obj(a=TEXT), ('{ a: "x" }',), ("{ b: 1 }",)),
    Case("others may be anything", obj(a=TEXT) | {"additionalProperties": True}, ("{ b: 1 }",), ("{ a: 1 }",)),
    Case(
        "others may have a type",
        {"type": "object", "additionalProperties": NUMBER},
        ("{ a: 1 }",),
        ('{ a: "x" }',),
    ),
    Case(
        "named properties differ from the others",
        obj(("a",), a=TEXT, b=NUMBER) | {"additionalProperties": {"type": "boolean"}},
        ('{ a: "x", c: true }',),
        ("{ a: true }", '{ a: "x", c: [] }'),
    ),
    Case(
        "large properties beside others compile",
        obj(a=obj(a=obj(a=obj(a=TEXT, b=TEXT, c=NUMBER, d=NUMBER, e=TEXT, f=TEXT))))
        | {"additionalProperties": NUMBER},
        ("{ z: 1 }",),
        ("{ a: 1 }",),
    ),
    Case(
        "a pattern gives a type to names it does not name",
        {"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": False},
        ('{ "x-a": "b" }',),
        ("{ a: 1 }",),
    ),
    Case("properties alone make an object", {"properties": {"a": TEXT}}, ('{ a: "x" }',), ('"x"', "{ a: 1 }")),
    Case(
        "any name can name a property",
        obj(
            ("a-b", "", '"', "class", "1", "__proto__"),
            **dict.fromkeys(("a-b", "", '"', "class", "1", "__proto__"), TEXT),
        ),
        ('{ "a-b": "", "": "", "\\"": "", class: "", 1: "", ["__proto__"]: "" }',),
        ('{ "a-b": "", "": "", "\\"": "", class: "", 1: 1, ["__proto__"]: "" }',),
    ),
]
LISTS = [
    Case("a list has items", {"type": "array", "items": TEXT}, ('["x"]', "[]"), ("[1]", '"x"')),
    Case("a list without items is open", {"type": "array"}, ("[1, null]",), ("{}",)),
    Case(
        "a list of a union is a list",
        {"type": "array", "items": {"enum": ["a", "b"]}},
        ('["a", "b"]',),
        ('["c"]',),
    ),
    Case("values for a list that are no lists say nothing", {"type": "array", "enum": ["a"]}, ("[1]",), ('"a"',)),
    Case("items alone make a list", {"items": TEXT}, ('["x"]',), ("[1]", '"x"')),
    Case("a list that allows no item is empty", {"type": "array", "items": False}, ("[]",), ("[1]",)),
    Case(
        "a tuple requires what minItems requires",
        {"type": "array", "prefixItems": [TEXT, NUMBER], "minItems": 1, "items": False},
        ('["x"]', '["x", 1]'),
        ("[]", '["x", "y"]', '["x", 1, 2]'),
    ),
    Case(
        "a tuple ends where maxItems ends",
        {"type": "array", "prefixItems": [TEXT, NUMBER, TEXT], "minItems": 2, "maxItems": 2},
        ('["x", 1]',),
        ('["x"]', '["x", 1, "y"]'),
    ),
    Case(
        "more may follow a tuple",
        {"type": "array", "prefixItems": [TEXT], "items": NUMBER, "minItems": 1},
        ('["x", 1, 2]',),
        ('["x", "y"]',),
    ),
    Case(
        "a tuple may be written the old way",
        {"type": "array", "items": [TEXT, NUMBER], "additionalItems": False, "minItems": 2},
        ('["x", 1]',),
        ('["x"]', '["x", 1, 1]'),
    ),
]
COMBINED = [
    Case("anyOf is a union", {"anyOf": [TEXT, NUMBER]}, ('"x"', "1"), ("true",)),
    Case("oneOf is a union", {"oneOf": [obj(("a",), a=TEXT), NUMBER]}, ('{ a: "x" }', "1"), ("{}", "true")),
    Case("anyOf with anything is anything", {"anyOf": [TEXT, {}]}, ("true",)),
    Case(
        "allOf is an intersection",
        {"allOf": [obj(("a",), a=TEXT), obj(("b",), b=TEXT)]},
        ('{ a: "", b: "" }',),
        ('{ a: "" }',),
    ),
    Case(
        "allOf may say more of the same property",
        {"allOf": [obj(a=TEXT), obj(("a",), a={"enum": ["x", "y"]})]},
        ('{ a: "x" }',),
        ("{}", '{ a: "z" }'),
    ),
    Case(
        "an object and its alternatives hold together",
        {**obj(("id",), id=NUMBER), "oneOf": [obj(("k",), k={"const": "a"}), obj(("k",), k={"const": "b"})]},
        ('{ id: 1, k: "a" }',),
        ('{ k: "a" }', '{ id: 1, k: "c" }'),
    ),
    Case(
        "a type beside alternatives changes nothing",
        {"type": "object", "anyOf": [obj(("a",), a=TEXT)]},
        ('{ a: "" }',),
        ("{}",),
    ),
]
REFERENCES = [
    Case("a reference is what it refers to", {"$ref": "#/$defs/T"}, ('"x"',), ("1",), {"T": TEXT}),
    Case("a reference may be escaped", {"$ref": "#/$defs/a~1b~0%25%20c"}, ('"x"',), ("1",), {"a/b~% c": TEXT}),
    Case(
        "a reference may lead anywhere", {"$ref": "#/$defs/T/properties/a"}, ('"x"',), ("1",), {"T": obj(a=TEXT)}
    ),
    Case(
        "a reference may lead into a list",
        {"$ref": "#/$defs/T/anyOf/1"},
        ("1",),
        ('"x"',),
        {"T": {"anyOf": [TEXT, NUMBER]}},
    ),
    Case("a reference to elsewhere is anything", {"$ref": "https://example.com/x.json"}, ("1", '"x"')),
    Case("a reference to nowhere is anything", {"$ref": "#/$defs/Missing"}, ("1", '"x"')),
    Case(
        "a tree is a tree",
        {"$ref": "#/$defs/Tree"},
        ('{ name: "a", children: [{ name: "b", children: [] }] }',),
        ('{ name: "a", children: [{ children: [] }] }',),
        {"Tree": TREE},
    ),
    Case(
        "a list may hold itself",
        {"$ref": "#/$defs/Json"},
        ('["a", ["b"]]',),
        ("[1]", "[[1]]"),
        {"Json": JSON_LIKE},
    ),
    Case(
        "a reference to the root is the root",
        {"anyOf": [{"$ref": "#"}, TEXT]},
        ('{ v: { v: "x" } }',),
        ("{ v: 1 }",),
    ),
    Case(
        "two may refer to each other",
        {"$ref": "#/$defs/A"},
        ("{ b: { a: {} } }",),
        ("{ b: { a: 1 } }",),
        {"A": obj(b={"$ref": "#/$defs/B"}), "B": obj(a={"$ref": "#/$defs/A"})},
    ),
    Case("a reference to itself is anything", {"$ref": "#/$defs/A"}, ("1",), (), {"A": {"$ref": "#/$defs/A"}}),
    Case(
        "a circle of references is anything",
        {"$ref": "#/$defs/A"},
        ("1",),
        (),
        {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    ),
    Case(
        "all of itself and more is the more",
        {"$ref": "#/$defs/A"},
        ('{ a: "x" }',),
        ("{ a: 1 }",),
        {"A": {"allOf": [{"$ref": "#/$defs/A"}, obj(a=TEXT)]}},
    ),
    Case(
        "a circle that opens late is no circle",
        {"$ref": "#/$defs/A"},
        (),
        (),
        {
            "A": {**obj(x={"$ref": "#/$defs/B"}), "anyOf": [{"$ref": "#/$defs/B"}, TEXT]},
            "B": {"anyOf": [{"$ref": "#/$defs/A"}, NUMBER]},
        },
    ),
    Case(
        "lists at the end of a tuple may hold the tuple",
        {"$ref": "#/$defs/A"},
        ('["x", [[]]]', "null"),
        ("[1]",),
        {"A": {"anyOf": [{**PAIR, "items": {"type": "array", "items": {"$ref": "#/$defs/A"}}}, {"type": "null"}]}},
    ),
    Case(
        "a tuple in a tuple may hold the first",
        {"$ref": "#/$defs/A"},
        ("[[]]",),
        ("[1]",),
        {"A": {"type": "array", "prefixItems": [{"type": "array", "prefixItems": [{"$ref": "#/$defs/A"}]}]}},
    ),
]
MALFORMED = [
    Case("a type that is a number is anything", {"type": 5}, ("1", '"x"')),
    Case("a type may have the name it has elsewhere", {"type": "str"}, ('"x"',), ("1",)),
    Case("a type that is no type is anything", {"type": "file"}, ("1", '"x"')),
    Case("properties in a list are none", {"type": "object", "properties": []}, ("{ a: 1 }",), ("1",)),
    Case("required in a sentence requires nothing", obj(a=TEXT) | {"required": "a"}, ("{}",), ("{ a: 1 }",)),
    Case("alternatives that are none say nothing", {**TEXT, "anyOf": [], "allOf": 5}, ('"x"',), ("1",)),
    Case("a schema that is a string is anything", "string", ("1",)),
]
CASES = [*SIMPLE, *OBJECTS, *LISTS, *COMBINED, *REFERENCES, *MALFORMED]
