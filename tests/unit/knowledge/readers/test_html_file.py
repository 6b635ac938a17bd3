"""HTML: the visible text of a page, and its positions in the file."""

import pytest

from tests.unit.knowledge.readers.builders import read, shown
from toolscript.core.errors import FileSkipped

pytestmark = pytest.mark.requirement("KN-005")

PAGE = """<!doctype html>
<html><head><title>A &amp; B</title><style>p {color: red}</style>
<meta name="author" content="Jane Example, John Example"><meta name=keywords content="one, two">
</head><body>
<nav><a href="/">Home</a></nav>
<h1>Title &lt;here&gt;</h1>
<p>First <b>bold</b>
   line<br>second &eacute;&#8364;
<p hidden>not this</p>
<ul><li>alpha<li>beta <ol><li>one</li><li>two</li></ol></ul>
<table><caption>Cap</caption><tr><th>k</th><th>v</th></tr><tr><td>1</td><td><p>2</p></td></tr></table>
<pre>  code
    here &amp; there</pre>
<div style="display: none">gone</div><span aria-hidden="true">gone</span>
<script>var x = "<p>gone</p>";</script><!-- gone --><template><p>gone</p></template><noscript>gone</noscript>
<div>loose text</div>
</body></html>
"""


def test_only_visible_text_is_kept() -> None:
    assert shown(read("page.html", PAGE)) == [
        ("heading1", "Title <here>"),
        ("text", "First bold line\nsecond é€"),
        ("list", "- alpha"),
        ("list", "- beta"),
        ("list", "  1. one"),
        ("list", "  2. two"),
        ("table", "Cap\n| k | v |\n|---|---|\n| 1 | 2 |"),
        ("code", "  code\n    here & there"),
        ("text", "loose text"),
    ]


def test_the_head_of_a_page_gives_its_metadata() -> None:
    reading = read("page.html", PAGE)
    assert (reading.title, reading.authors, reading.topics) == (
        "A & B",
        ("Jane Example", "John Example"),
        ("one", "two"),
    )


def test_a_block_stands_where_the_file_has_it() -> None:
    blocks = read("page.html", PAGE).blocks
    assert [block.line for block in blocks] == [6, 7, 10, 10, 10, 10, 11, 12, 16]
    assert [PAGE[block.start : block.end] for block in blocks][:4] == [
        "Title &lt;here&gt;",
        "First <b>bold</b>\n   line<br>second &eacute;&#8364;",
        "alpha",
        "beta",
    ]


def test_only_the_main_element_of_a_page_is_read() -> None:
    page = "<body><header>Site</header><main><h1>Own</h1><p>text</p></main><footer>Site</footer></body>"
    assert shown(read("a.htm", page)) == [("heading1", "Own"), ("text", "text")]


def test_a_table_that_lays_out_a_page_is_no_table() -> None:
    page = "<table><tr><td><h2>Left</h2><p>a</p></td><td><ul><li>b</ul></td></tr></table>"
    assert shown(read("a.html", page)) == [("heading2", "Left"), ("text", "a"), ("list", "- b")]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [('<meta charset="iso-8859-1">', "cp1252"), ("<meta charset=windows-1251>", "cp1251"), ("", "cp1252")],
)
def test_the_declared_encoding_of_a_page_is_used(head: str, encoding: str) -> None:
    text = "Привет" if encoding == "cp1251" else "Größe"
    reading = read("a.html", f"<html><head>{head}</head><body><p>{text}".encode(encoding))
    assert shown(reading) == [("text", text)]
    assert reading.metadata["encoding"] == encoding


@pytest.mark.parametrize("tag", ["div", "b", "ul><li", "span"])
def test_deep_nesting_ends_in_a_reason(tag: str) -> None:
    with pytest.raises(FileSkipped, match="nested too deeply"):
        read("a.html", f"<{tag}>" * 5_000 + "x")


def test_a_page_without_text_is_left_out() -> None:
    with pytest.raises(FileSkipped, match="no text"):
        read("a.html", "<html><script>1</script></html>")
