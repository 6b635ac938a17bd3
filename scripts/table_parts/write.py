"""Writes the files of the built-in table: the table, its tokenizer, and a card that says how it was made."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolscript.core.embedding.static_table import CARD_FILE, SCALES_FILE, TABLE_FILE, TOKENIZER_FILE

MADE_BY = (
    "Token vectors of all-MiniLM-L6-v2, corrected by ridge regression and weighed by gradient so that the sum of "
    "a text's tokens points where the model's sentence vector does, and partly whitened; 384 dimensions of 4 "
    "bits, with one scale for each token."
)


def write_table(
    folder: Path,
    table: NDArray[np.uint8],
    scales: NDArray[np.float16],
    tokenizer: Path,
    facts: Mapping[str, object],
) -> str:
    """Write all files and return the hash of those that determine a vector."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / TABLE_FILE, table)
    np.save(folder / SCALES_FILE, scales)
    (folder / TOKENIZER_FILE).write_bytes(tokenizer.read_bytes())
    contents = [(folder / name).read_bytes() for name in (TABLE_FILE, SCALES_FILE, TOKENIZER_FILE)]
    digest = hashlib.sha256(b"".join(contents)).hexdigest()
    card = {
        "name": "builtin",
        "sha256": digest,
        "bytes": sum(map(len, contents)),
        "tokens": len(table),
        "dimensions": 2 * table.shape[1],
        "made_by": MADE_BY,
        "judged": "docs/builtin-model.md",
        "licences": "NOTICE.md",
        **facts,
    }
    (folder / CARD_FILE).write_text(json.dumps(card, indent=2) + "\n", "utf-8")
    return digest
