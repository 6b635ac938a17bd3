"""A cross-encoder in this process, through fastembed: it scores query and passage together.

It runs on its own threads, a few passages at a time: a cancelled request waits for at most one such batch.
"""

import asyncio
import hashlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fastembed.common.model_description import ModelSource
from fastembed.rerank.cross_encoder import TextCrossEncoder
from loguru import logger as fastembed_log

from toolscript.core.embedding.engine import Device, providers_for
from toolscript.core.embedding.fastembed_models import require_network
from toolscript.core.embedding.local_folder import MODEL_FILES
from toolscript.core.errors import ModelNotFound, ModelUnknown, Rejected, SetupError, Unavailable

BATCH = 16
# More than any of these models reads; its tokenizer cuts to what it does read.
MAX_LETTERS = 8_000
SETTING = "TOOLSCRIPT_RERANK_MODEL"


class CrossEncoder:
    """Reranks `parallel` batches at once on `threads` cores each. Models are stored in `downloads`."""

    def __init__(
        self,
        model: str,
        *,
        threads: int | None = None,
        parallel: int = 1,
        max_waiting: int = 16,
        device: Device = Device.AUTO,
        downloads: Path | None = None,
    ) -> None:
        self._encoder = _load(model, threads, device, downloads)
        self._name = Path(model).name if Path(model).expanduser().is_dir() else model
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="rerank")
        self._places = asyncio.Semaphore(max_waiting)

    @property
    def name(self) -> str:
        return self._name

    async def scores(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        if self._places.locked():
            raise Unavailable(f"{self._name} is overloaded", hint="try again in a moment")
        async with self._places:
            logits = [
                logit
                for start in range(0, len(passages), BATCH)
                for logit in await self._run(query, passages[start : start + BATCH])
            ]
        return [_probability(logit) for logit in logits]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, query: str, passages: Sequence[str]) -> list[float]:
        loop = asyncio.get_running_loop()
        try:
            work = loop.run_in_executor(self._pool, self._rerank, query, passages)
        except RuntimeError as error:
            raise Unavailable(f"{self._name} has been shut down") from error
        scores = await work
        if len(scores) != len(passages) or not all(map(math.isfinite, scores)):
            raise Rejected(f"{self._name} returned invalid scores", hint=f"set another model ({SETTING})")
        return scores

    def _rerank(self, query: str, passages: Sequence[str]) -> list[float]:
        try:
            return list(self._encoder.rerank(_encodable(query), list(map(_encodable, passages)), BATCH))
        except Exception as error:
            raise Rejected(f"{self._name} failed: {error}"[:500], hint=f"set another model ({SETTING})") from error


def _encodable(text: str) -> str:
    # A lone surrogate is legal in a JSON request, but the tokenizer rejects it.
    return text[:MAX_LETTERS].encode("utf-8", "replace").decode()


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


def _load(model: str, threads: int | None, device: Device, downloads: Path | None) -> TextCrossEncoder:
    # fastembed logs every failed attempt; our error reports the outcome.
    fastembed_log.disable("fastembed")
    folder = Path(model).expanduser()
    try:
        if folder.is_dir():
            encoder = _from_folder(folder.resolve(), threads, device)
        else:
            encoder = _by_name(model, threads, device, downloads)
        # Any model can be loaded; only a cross-encoder returns one number for a pair.
        list(encoder.rerank("query", ["passage"]))
        return encoder
    except SetupError:
        raise
    except Exception as error:
        raise ModelNotFound(
            f"the cross-encoder {model} cannot be loaded: {error}"[:500],
            hint=f"set the folder of an ONNX cross-encoder, or a name that can be downloaded ({SETTING})",
        ) from error


def _from_folder(folder: Path, threads: int | None, device: Device) -> TextCrossEncoder:
    file = next((name for name in MODEL_FILES if (folder / name).is_file()), None)
    if file is None:
        raise ModelNotFound(
            f"{folder} holds no ONNX model", hint=f"expected one of {', '.join(MODEL_FILES)} in it ({SETTING})"
        )
    # fastembed loads a folder by a name that is registered once.
    name = f"folder-{hashlib.sha256(f'{folder}:{file}'.encode()).hexdigest()}"
    if name not in _model_names():
        TextCrossEncoder.add_custom_model(name, ModelSource(url="file:"), model_file=file)
    return TextCrossEncoder(
        name, threads=threads, providers=providers_for(device), specific_model_path=str(folder)
    )


def _by_name(name: str, threads: int | None, device: Device, downloads: Path | None) -> TextCrossEncoder:
    model_names = [model_name for model_name in _model_names() if not model_name.startswith("folder-")]
    if name not in model_names:
        raise ModelUnknown(
            f"the cross-encoder {name} cannot be loaded: no model has this name",
            hint=f"set the folder of an ONNX cross-encoder, or one of {', '.join(model_names)} ({SETTING})",
            details={"known_models": model_names},
        )
    folder, providers = str(downloads) if downloads else None, providers_for(device)
    try:
        return TextCrossEncoder(name, folder, threads, providers, local_files_only=True)
    except ValueError:
        require_network(f"the cross-encoder {name}", SETTING)
        return TextCrossEncoder(name, folder, threads, providers)


def _model_names() -> list[str]:
    return sorted(str(described["model"]) for described in TextCrossEncoder.list_supported_models())
