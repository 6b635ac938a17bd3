"""Chunking loses nothing, repeats nothing, and gives chunks about one subject that fit one vector."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolscript.core.chunking import terms_of_chunk
from toolscript.knowledge.ingest.chunking import (
    MAX_TOKENS,
    TARGET_TOKENS,
    chunk_terms,
    chunk_text,
    cut_into_chunks,
    estimated_tokens,
)
from toolscript.knowledge.model.ingest import Block, BlockKind
from toolscript.knowledge.model.library import Chunk

pytestmark = [pytest.mark.requirement("KN-005"), pytest.mark.slow]

SOURCE = "5" * 24
SENTENCE = "One two three four five six seven eight nine ten. "


def words(text: str) -> int:
    return len(text.split())


def letters(text: str) -> int:
    return len("".join(text.split()))


def heading(text: str, level: int = 1) -> Block:
    return Block(BlockKind.HEADING, text, level)


def text(content: str, kind: BlockKind = BlockKind.TEXT) -> Block:
    return Block(kind, content)


def cut(*blocks: Block) -> list[Chunk]:
    """Chunk the blocks; a word counts as a token."""
    return cut_into_chunks(SOURCE, "Title", blocks, words)


def contents(*blocks: Block) -> list[str]:
    return [chunk.content for chunk in cut(*blocks)]


def without_spaces(content: str) -> str:
    return "".join(content.split())


LETTERS = [*"abcde", " ", " ", "\n", ". ", "! ", "。", "語", "e\u0301", "-"]
any_text = st.builds(
    lambda parts, times: "".join(parts) * times,
    st.lists(st.sampled_from(LETTERS), max_size=12),
    st.integers(1, 120),
)
blocks_of_any_kind = st.lists(
    st.builds(
        Block,
        kind=st.sampled_from(BlockKind),
        text=any_text,
        level=st.integers(1, 6),
        page=st.none() | st.integers(1, 3),
        line=st.none() | st.integers(1, 9),
        start=st.integers(0, 99),
    ),
    max_size=12,
)


@given(blocks=blocks_of_any_kind, count=st.sampled_from([words, letters, estimated_tokens]))
@settings(max_examples=150, deadline=None)
def test_chunks_have_the_whole_text_in_order_without_overlap(blocks: list[Block], count: object) -> None:
    assert callable(count)
    chunks = cut_into_chunks(SOURCE, "Title", blocks, count)
    assert without_spaces("".join(chunk.content for chunk in chunks)) == without_spaces(
        "".join(block.text for block in blocks)
    )
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert all(chunk.content.strip() for chunk in chunks)


@given(blocks=blocks_of_any_kind, count=st.sampled_from([words, letters, estimated_tokens]))
@settings(max_examples=150, deadline=None)
def test_no_chunk_exceeds_the_input_of_the_model(blocks: list[Block], count: object) -> None:
    assert callable(count)
    for chunk in cut_into_chunks(SOURCE, "Title", blocks, count):
        assert chunk.token_count == count(chunk.content) <= MAX_TOKENS
        if count(chunk.position.section) < MAX_TOKENS // 4:
            assert count(chunk_text("Title", chunk)) <= MAX_TOKENS


@given(blocks=blocks_of_any_kind)
@settings(max_examples=100, deadline=None)
def test_chunking_is_deterministic(blocks: list[Block]) -> None:
    assert cut_into_chunks(SOURCE, "T", blocks, words) == cut_into_chunks(SOURCE, "T", blocks, words)


@given(st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 3, 4]), st.integers(1, 250)), max_size=25))
@settings(max_examples=100, deadline=None)
def test_no_chunk_has_text_from_both_sides_of_a_heading_of_level_1_or_2(plan: list[tuple[int, int]]) -> None:
    blocks, part, part_of = [], 0, {}
    for number, (level, length) in enumerate(plan):
        if level:
            blocks.append(heading(f"h{number}", level))
            part += level <= 2
        else:
            blocks.append(text(" ".join([f"w{number}"] * length)))
            part_of[f"w{number}"] = part
    for chunk in cut(*blocks):
        assert len({part_of[word] for word in chunk.content.split() if word in part_of}) <= 1


def test_small_sections_of_one_parent_are_joined_and_larger_ones_are_not() -> None:
    small, large = SENTENCE * 3, SENTENCE * 12
    assert contents(heading("A", 2), heading("x", 3), text(small), heading("y", 3), text(small)) == [
        f"A\n\nx\n\n{small}\n\ny\n\n{small}"
    ]
    chunks = contents(heading("A", 2), heading("x", 3), text(large), heading("y", 3), text(large))
    assert [item.split("\n")[0] for item in chunks] == ["A", "y"]


def test_a_section_of_an_outer_heading_is_not_joined_to_an_inner_one() -> None:
    large = SENTENCE * 6
    chunks = contents(text(SENTENCE * 18), heading("inner", 4), text(large), heading("outer", 3), text(large))[1:]
    assert [item.split("\n")[0] for item in chunks] == ["inner", "outer"]


def test_code_that_fits_stays_whole_and_longer_code_is_split_between_lines() -> None:
    whole = "\n".join(f"    line {number} of code" for number in range(45))
    (before, code) = contents(text(SENTENCE * 15), text(whole, BlockKind.CODE))
    assert code == whole
    assert before == (SENTENCE * 15)
    long = "\n".join(f"  row {number}" for number in range(500))
    parts = contents(text(long, BlockKind.CODE))
    assert "\n".join(parts) == long
    assert len(parts) > 4


def test_long_text_is_cut_between_sentences() -> None:
    chunks = contents(text(SENTENCE * 60))
    assert all(item.rstrip().endswith("ten.") for item in chunks)
    assert all(words(item) <= TARGET_TOKENS for item in chunks)
    assert len(chunks) == 3


def test_a_lead_in_belongs_to_the_text_it_introduces() -> None:
    chunks = contents(text(SENTENCE * 15), text("These are the rules:"), text("rule " * 100, BlockKind.CODE))
    assert chunks[1].startswith("These are the rules:\n\nrule")


def test_a_heading_is_never_left_behind() -> None:
    chunks = contents(text(SENTENCE * 19), heading("Next", 3), text("rule " * 240, BlockKind.CODE))
    assert chunks[1].startswith("Next\n\nrule")


def test_a_page_ends_a_chunk_only_where_its_text_ends() -> None:
    def pages(first: str) -> list[str]:
        blocks = [Block(BlockKind.TEXT, first, page=1), Block(BlockKind.TEXT, "and goes on. " * 20, page=2)]
        return [chunk.content for chunk in cut_into_chunks(SOURCE, "T", blocks, words)]

    assert pages(SENTENCE * 12) == [SENTENCE * 12, "and goes on. " * 20]
    (joined,) = pages(SENTENCE * 12 + "It stops")
    assert "It stops and goes on. and" in joined


def test_positions_are_the_start_and_the_end_of_a_chunk() -> None:
    source = f"# Book\n\n## Part\n\nFirst line.\nSecond line.\n\n### Small\n\n{SENTENCE * 30}\n"
    offset_of = source.index
    blocks = [
        Block(BlockKind.HEADING, "Book", 1, None, 1, 0, 6),
        Block(BlockKind.HEADING, "Part", 2, None, 3, offset_of("## Part"), offset_of("## Part") + 7),
        Block(
            BlockKind.TEXT, "First line.\nSecond line.", 0, None, 5, offset_of("First"), offset_of("\n\n### Small")
        ),
        Block(BlockKind.HEADING, "Small", 3, None, 8, offset_of("### Small"), offset_of("### Small") + 9),
        Block(BlockKind.TEXT, SENTENCE * 30, 0, None, 10, offset_of("One two"), len(source) - 1),
    ]
    first, *rest = cut_into_chunks(SOURCE, "T", blocks, words)
    assert (first.position.chapter, first.position.section, first.position.line) == ("Book", "Part", 1)
    assert source[first.position.start : first.position.end].endswith("Second line.")
    assert {other.position.section for other in rest} == {"Small"}
    assert source[rest[0].position.start :].startswith("### Small")
    assert all(
        source[other.position.start : other.position.end].strip() == other.content.strip() for other in rest[1:]
    )


def test_lines_are_counted_within_a_block() -> None:
    long = "\n".join(f"row {number}" for number in range(300))
    chunks = cut_into_chunks(SOURCE, "T", [Block(BlockKind.CODE, long, line=10)], words)
    assert [chunk.position.line for chunk in chunks] == [
        10 + int(chunk.content.split("\n")[0].removeprefix("row ")) for chunk in chunks
    ]


def test_the_same_text_twice_has_two_ids_and_they_stay() -> None:
    twice = cut(heading("A"), text("same"), heading("A"), text("same"))
    assert twice[0].content == twice[1].content
    assert twice[0].id != twice[1].id
    more = cut(heading("New"), text("before"), heading("A"), text("same"), heading("A"), text("same"))
    assert [chunk.id for chunk in more[1:]] == [chunk.id for chunk in twice]


def test_the_embedded_text_has_title_and_section_once() -> None:
    first, second = cut(heading("Sleep"), text(SENTENCE * 25))
    assert chunk_text("Notes", first).startswith("Notes\nSleep\n\nOne two")
    assert chunk_text("Notes", second).startswith("Notes\nSleep\nOne two")
    assert chunk_text("Sleep", first).startswith("Sleep\n\nOne two")


def test_the_headings_above_a_chunk_weigh_like_a_title() -> None:
    _, second = cut(heading("Sleep"), text(SENTENCE * 25))
    assert chunk_terms("Notes", second) == terms_of_chunk("Sleep Notes", second.content)
    (sleep,) = terms_of_chunk("", "sleep")
    assert sleep in chunk_terms("Notes", second)


def test_the_estimate_is_rather_too_high() -> None:
    assert estimated_tokens("Tokenizers are estimated, 12345 times") >= 11
    assert estimated_tokens("吾輩は猫") == 4
    assert estimated_tokens(" \n") == 0
