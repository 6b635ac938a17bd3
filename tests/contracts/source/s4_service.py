"""An ingested library, and `toolscript serve` over it, configured as in S4: by its names, from `.env`."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from fpdf import FPDF

from tests.e2e.commands import WAIT_SECONDS, command, environment, run_here, until_listening
from tests.e2e.ingest.holdings import holdings
from tests.support.reserved_ports import reserved_port
from tests.unit.core.llm.text_endpoint import TextEndpoint
from toolscript.core.embedding.embedder import LocalEmbedder

Json = dict[str, Any]

TITLE = "Keeping bees"
SECTIONS = {
    "The hive": "A hive has to stand in a dry place, with its back to the wind.",
    "Food": "Feed the colony sugar syrup before winter comes.",
    "The queen": "A queen lays two thousand eggs a day in spring.",
    "Swarms": "A colony that is short of room leaves with its old queen.",
    "Mites": "Varroa mites weaken the brood and must be counted every month.",
    "Honey": "Honey is ripe when most of its cells are capped with wax.",
    "Smoke": "Smoke calms the bees because they fill themselves with honey.",
    "Wax": "Old comb is melted down and strained through cloth.",
    "Water": "Bees need a shallow place to drink near the hive.",
    "Stings": "A sting is scraped off and never squeezed.",
    "Robbing": "Strong colonies rob weak ones when flowers are few.",
    "Frames": "Frames are numbered so that they go back in their order.",
}
PAPER = "Every steel bridge is painted anew after twelve years, for it rusts where water stands on the deck."
# Each section is a chunk, and so is the paper; each has an extraction.
CHUNKS = len(SECTIONS) + 1
# Their names in S4.
IN_FILE = {
    "MONGODB_URI": "TOOLSCRIPT_MONGO_URL",
    "QDRANT_URL": "TOOLSCRIPT_QDRANT_URL",
    "EMBEDDING_MODEL": "TOOLSCRIPT_EMBEDDING_MODEL",
}


def write_books(folder: Path) -> Path:
    folder.mkdir()
    sections = "".join(f"\n## {name}\n\n{text}\n" for name, text in SECTIONS.items())
    (folder / "bees.md").write_text(f"# {TITLE}\n{sections}", "utf-8")
    paper = FPDF()
    paper.set_title("Steel bridges")
    paper.set_font("Helvetica", size=12)
    paper.add_page()
    paper.add_page()
    paper.multi_cell(0, 8, PAPER)
    paper.output(str(folder / "bridges.pdf"))
    return folder


def found_in(body: Json) -> object:
    """Return a warning with the text of each chunk, and a decision for those about honey."""
    lines = [line for line in body["messages"][-1]["content"].splitlines() if line.startswith("{")]
    passages = [json.loads(line) for line in lines]
    return {
        "passages": [
            {
                "passage": passage["passage"],
                "extractions": [
                    {
                        "type": "decision" if "ripe" in passage["text"] else "warning",
                        "title": "To be remembered",
                        "text": passage["text"][-80:],
                        "topics": ["Care"],
                    }
                ],
            }
            for passage in passages
        ]
    }


def ingest(settings: Mapping[str, str], books: Path) -> None:
    with TextEndpoint(model=found_in) as endpoint:
        output = {**settings, "TOOLSCRIPT_TEXT_URL": endpoint.url, "TOOLSCRIPT_TEXT_MODEL": "m"}
        message = ["--type", "case_study", "--topic", "Nature", "--author", "Ann"]
        run_here(output, "ingest", str(books), *message)


@dataclass(frozen=True)
class Service:
    """`settings`: those of the ingest. `model`: folder of the model. `file`: the log."""

    url: str
    settings: Mapping[str, str]
    model: Path
    file: Path

    def post(self, path: str, json: object = None, **headers: str) -> httpx2.Response:
        url = f"{self.url}{path}"
        return httpx2.post(url, json=json, headers=headers, trust_env=False, verify=False, timeout=WAIT_SECONDS)

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"{self.url}{path}", trust_env=False, verify=False, timeout=WAIT_SECONDS)

    def search(self, query: str, **asked: object) -> Json:
        answer = self.post("/search_knowledge", {"query": query, **asked})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def lines(self) -> list[Json]:
        text = self.file.read_text("utf-8").splitlines()
        return [json.loads(line) for line in text if line.startswith("{")]


@contextmanager
def serving_from(folder: Path, settings: Mapping[str, str], model: Path) -> Iterator[Service]:
    """Yield a service; the settings that S4 has in `.env` are only there, the others in the environment."""
    file = folder / ".env"
    file.write_text("".join(f"{name}={settings[ours]}\n" for name, ours in IN_FILE.items()), "utf-8")
    file.chmod(0o600)
    hidden = {*IN_FILE.values(), "TOOLSCRIPT_MONGO_WRITER_URL"}
    output = {name: value for name, value in settings.items() if name not in hidden}
    output |= {"ENVIRONMENT": "local", "TOOLSCRIPT_ENVIRONMENT": "development", "TOOLSCRIPT_LOG_QUERIES": "true"}
    with reserved_port() as port, (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            command("serve", "--port", str(port)), env=environment(output), cwd=folder, stderr=log
        )
        try:
            until_listening(process, port, log)
            yield Service(f"http://127.0.0.1:{port}", settings, model, folder / "log")
        finally:
            process.terminate()
            process.wait(WAIT_SECONDS)


async def cosines(service: Service, query: str) -> list[tuple[float, str]]:
    """Return the cosines, computed from the vectors in the engine."""
    held = await holdings(dict(service.settings))
    embedder = LocalEmbedder(str(service.model))
    vector = await embedder.embed_query(query)
    embedder.close()
    result = []
    for kind, prefix in (("chunk points", b"chnk"), ("extraction points", b"extr")):
        for id_, (_, dense, _) in held[kind].items():
            stored = np.array(dense)
            result.append((float(stored @ vector / np.linalg.norm(stored)), prefix.hex() + id_))
    return sorted(result, key=lambda item: (-item[0], item[1]))
