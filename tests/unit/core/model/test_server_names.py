"""Server names that could pass for another's are refused; names in other languages are not."""

import pytest

from toolscript.core.errors import InvalidRequest
from toolscript.core.item_json import catalog_item_from_json

pytestmark = pytest.mark.requirement("SK-010")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("g\u0456thub", "looks like them: '\u0456', cyrillic small letter byelorussian-ukrainian i (U+0456)"),
        ("git\u03bfhub", "greek small letter omicron"),
        ("git\uff48ub", "fullwidth latin small letter h"),
        ("git\u200bhub", "invisible character: U+200B"),
        ("git\u202ehub", "invisible character: U+202E"),
        ("a__b", "`__`"),
        ("a_", "`_` at its end"),
    ],
)
def test_a_misleading_name_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        catalog_item_from_json({"server": name, "name": "tool"})
    assert why in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    "name",
    [
        "github",
        "CoinLedger API",
        "a_b",
        "Pok\u00e9mcp",
        "GDB MCP \u670d\u52a1\u5668",
        "\u041f\u043e\u0447\u0442\u0430",
        "OpenDAL\u2122",
    ],
)
def test_a_name_in_any_single_script_is_accepted(name: str) -> None:
    assert catalog_item_from_json({"server": name, "name": "tool"}).server == name


def test_a_tool_name_may_contain_the_separator() -> None:
    assert catalog_item_from_json({"server": "a", "name": "b__c"}).name == "b__c"
