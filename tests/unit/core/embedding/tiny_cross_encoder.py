"""A cross-encoder of fifteen operations: its score is how often a word of the query occurs in the passage.

It is written in the ONNX format, field by field, so that the real runtime loads it.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

FLOAT, INT64 = 1, 7
MAX_TOKENS = 64
# The score of a pair without a common word.
NOTHING_COMMON = -2.0
# The separator follows the query and the passage: a match that does not count.
_SEPARATORS = 1.0

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["the", "cat", "dog", "sat", "on", "mat", "blue", "red", "fish", "sky", "sea"]


def write_cross_encoder(folder: Path, *, nothing_common: float = NOTHING_COMMON) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(nothing_common - _SEPARATORS))
    _tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"model_max_length": MAX_TOKENS, "pad_token": "[PAD]"}), "utf-8"
    )
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}), "utf-8")
    return folder


def _tokenizer() -> Tokenizer:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer


def _model(bias: float) -> bytes:
    nodes = [
        _node("Unsqueeze", ["input_ids", "one"], "row"),
        _node("Unsqueeze", ["input_ids", "two"], "column"),
        _node("Equal", ["column", "row"], "equal"),
        _node("Cast", ["equal"], "same", to=FLOAT),
        _node("Cast", ["token_type_ids"], "kind", to=FLOAT),
        _node("Cast", ["attention_mask"], "there", to=FLOAT),
        _node("Sub", ["unit", "kind"], "other_kind"),
        _node("Mul", ["other_kind", "there"], "asked"),
        _node("Mul", ["kind", "there"], "said"),
        _node("Unsqueeze", ["asked", "one"], "asked_row"),
        _node("Unsqueeze", ["said", "two"], "said_column"),
        _node("MatMul", ["asked_row", "same"], "asked_and_same"),
        _node("MatMul", ["asked_and_same", "said_column"], "matches"),
        _node("Squeeze", ["matches", "two"], "count"),
        _node("Add", ["count", "bias"], "logits"),
    ]
    constants = [
        _tensor("one", INT64, [1], struct.pack("<q", 1)),
        _tensor("two", INT64, [1], struct.pack("<q", 2)),
        _tensor("unit", FLOAT, [], struct.pack("<f", 1.0)),
        _tensor("bias", FLOAT, [], struct.pack("<f", bias)),
    ]
    inputs = [_value(name, INT64) for name in ("input_ids", "attention_mask", "token_type_ids")]
    graph = b"".join(
        [
            *(_bytes(1, node) for node in nodes),
            _bytes(2, b"tiny"),
            *(_bytes(5, constant) for constant in constants),
            *(_bytes(11, value) for value in inputs),
            _bytes(12, _value("logits", FLOAT)),
        ]
    )
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))


def _node(operation: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    fields = [_bytes(1, name.encode()) for name in inputs] + [_bytes(2, output.encode())]
    fields += [_bytes(3, output.encode()), _bytes(4, operation.encode())]
    fields += [
        _bytes(5, _bytes(1, name.encode()) + _number(3, value) + _number(20, 2))
        for name, value in attributes.items()
    ]
    return b"".join(fields)


def _tensor(name: str, kind: int, shape: Sequence[int], data: bytes) -> bytes:
    sizes = b"".join(_number(1, size) for size in shape)
    return sizes + _number(2, kind) + _bytes(8, name.encode()) + _bytes(9, data)


def _value(name: str, kind: int) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, size)) for size in (b"pairs", f"{name}_length".encode()))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
