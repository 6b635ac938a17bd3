"""Random tools of a server that tries to inject code into the client."""

import random

from tests.unit.gateway.typescript.tools import tool
from toolscript.core.items import Item

PIECES = (
    *("*/", "/*", "/**", "//", "*", "/", "\\", '"', "'", "`", "${evil()}", "$&", "`+evil()+`"),
    *('"); evil(); ("', "'); evil(); ('", "*/ evil(); /*", "}; evil(); const x = {", "\\*/evil()", "*\0/evil()"),
    *("\n", "\r", "\r\n", "\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\0", "\x1b[31m", "\x7f"),
    *("\u202e", "\u2066", "\ufeff", "\u200b", "\u200d", "\u00ad", "\ud800", "\udfff", "\ud83d"),
    *(
        "@ts-ignore",
        "@ts-expect-error",
        "@ts-nocheck",
        "@TS-IGNORE",
        "@jsx evil",
        "@jsxImportSource evil",
        "@import",
    ),
    *('/// <reference path="evil" />', "#!evil", "//# sourceMappingURL=evil", "<!--", "-->", "</script>"),
    *(
        "__proto__",
        "constructor",
        "prototype",
        "toString",
        "then",
        "hasOwnProperty",
        "callTool",
        "tools",
        "Promise",
    ),
    *("class", "default", "delete", "await", "async", "get", "set", "static", "enum", "import", "export", "any"),
    *(
        "Params",
        "Result",
        "2",
        "0",
        "9lives",
        "1e3",
        "-1",
        "[key: string]",
        "?",
        "!",
        ";",
        ",",
        "{",
        "}",
        "(",
        ")",
    ),
    *(
        "a",
        "b",
        "A",
        "read_file",
        "read-file",
        "readFile",
        "read file",
        "_",
        "__",
        "$",
        "-",
        ".",
        "..",
        "%2F",
        "%",
    ),
    *(
        "ß",
        "İ",
        "ﬁ",
        "ǆ",
        "é",
        "e\u0301",
        "日本語",
        "поиск",
        "ขอ",
        "𝒳",
        "😀",
        "🏴\u200d☠️",
        "ª",
        "ⅷ",
        "٣",
        "ᛮ",
        "ೱ",
    ),
)
KINDS = ("string", "number", "integer", "boolean", "null", "object", "array", "any", "", "evil()")
FORMS = ("object", "array", "tuple", "union", "all", "reference", "values", "simple", "malformed", "deep")


class Hostile:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def text(self, maximum: int = 5) -> str:
        return "".join(self._random.choices(PIECES, k=self._random.randint(0, maximum)))

    def item(self) -> Item:
        schema, output = self._document(), self._document() if self._random.random() < 0.4 else None
        return tool(schema, server=self.text(2), name=self.text(3), description=self.text(12), output=output)

    def _document(self) -> dict[str, object]:
        """Return a schema with definitions under names that are hard to reference."""
        definitions = {name: self.schema(2) for name in ("A", "B", self.text(2))}
        body = self.schema(4)
        document = body if isinstance(body, dict) else {"anyOf": [body]}
        return {**document, self._random.choice(("$defs", "definitions")): definitions}

    def schema(self, depth: int) -> object:
        form = self._random.choice(FORMS if depth > 0 else ("simple", "values", "reference", "malformed"))
        made: dict[str, object] = getattr(self, f"_{form}")(depth - 1)
        if self._random.random() < 0.5:
            made |= {"description": self.text(8), "format": self.text(2), "default": self._value(2)}
        if self._random.random() < 0.1:
            made |= self._random.choice(
                ({"nullable": True}, {"not": {}}, {"title": self.text()}, {"deprecated": True})
            )
        return (
            made if self._random.random() < 0.95 else self._random.choice((True, False, None, 5, [], self.text()))
        )

    def _some(self, depth: int, maximum: int = 3) -> list[object]:
        return [self.schema(depth) for _ in range(self._random.randint(0, maximum))]

    def _object(self, depth: int) -> dict[str, object]:
        names = [self.text(3) for _ in range(self._random.randint(0, 4))]
        made: dict[str, object] = {"type": "object", "properties": {name: self.schema(depth) for name in names}}
        if self._random.random() < 0.5:
            made["required"] = [*self._random.sample(names, len(names) // 2), self.text(2)]
        if self._random.random() < 0.4:
            made["additionalProperties"] = self._random.choice((True, False, self.schema(depth)))
        if self._random.random() < 0.2:
            made["patternProperties"] = {self.text(2): self.schema(depth), "^x": self.schema(depth)}
        return made

    def _array(self, depth: int) -> dict[str, object]:
        return {"type": "array", "items": self.schema(depth), "minItems": self._random.choice((0, 1, -5, "1"))}

    def _tuple(self, depth: int) -> dict[str, object]:
        first, last = self._random.choice((("prefixItems", "items"), ("items", "additionalItems")))
        made: dict[str, object] = {
            "type": "array",
            first: self._some(depth),
            "minItems": self._random.randint(0, 4),
        }
        if self._random.random() < 0.5:
            made[last] = self.schema(depth)
        return made | ({"maxItems": self._random.randint(0, 4)} if self._random.random() < 0.5 else {})

    def _union(self, depth: int) -> dict[str, object]:
        return {
            self._random.choice(("anyOf", "oneOf")): self._some(depth),
            **self._random.choice(({}, {"type": "object"})),
        }

    def _all(self, depth: int) -> dict[str, object]:
        return {"allOf": self._some(depth), **(self._object(depth) if self._random.random() < 0.3 else {})}

    def _reference(self, depth: int) -> dict[str, object]:
        places = (
            "#",
            "#/$defs/A",
            "#/definitions/A",
            "#/$defs/B",
            "#/properties/a",
            "#/allOf/0",
            "#/anyOf/1",
            "#/%24defs/A",
        )
        nowhere = (
            "http://127.0.0.1:9/evil.json",
            "#/nowhere",
            "#anchor",
            "",
            "#/~",
            "#/%zz",
            self.text(),
            5,
            None,
        )
        return {"$ref": self._random.choice(places if self._random.random() < 0.8 else nowhere)}

    def _values(self, depth: int) -> dict[str, object]:
        if self._random.random() < 0.3:
            return {"const": self._value(3)}
        return {"enum": [self._value(2) for _ in range(self._random.randint(0, 6))]}

    def _value(self, depth: int) -> object:
        simple = (self.text(3), self._random.random() * 10 ** self._random.randint(-30, 30), None, True, False)
        odd = (float("nan"), float("-inf"), -1, -0.0, 2**70, -(2**53), 10**400)
        nested: tuple[object, ...] = ([self.text(2)] * 2, {self.text(2): self.text(2)}, {"__proto__": [1]}, [], {})
        return self._random.choice((*simple, *simple, *odd, *(nested if depth else ())))

    def _simple(self, depth: int) -> dict[str, object]:
        kinds = self._random.sample(KINDS, self._random.randint(1, 3))
        return {"type": kinds[0] if len(kinds) == 1 else kinds}

    def _malformed(self, depth: int) -> dict[str, object]:
        word = self._random.choice(
            (
                "type",
                "properties",
                "items",
                "enum",
                "anyOf",
                "allOf",
                "required",
                "prefixItems",
                "additionalProperties",
            )
        )
        return {word: self._random.choice((5, [], {}, self.text(), [5, None], {"": 5}, None, True, [[]], [{}]))}

    def _deep(self, depth: int) -> dict[str, object]:
        made: object = self.schema(0)
        for _ in range(self._random.choice((5, 30, 60))):
            wrappers = (
                {"properties": {"a": made}},
                {"items": made},
                {"anyOf": [made, {"type": "null"}]},
                {"allOf": [made]},
            )
            made = self._random.choice(wrappers)
        return made if isinstance(made, dict) else {}
