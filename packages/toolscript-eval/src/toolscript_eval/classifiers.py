"""`eval skills`: run the classifiers of the service over labelled items, with recorded answers if need be."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from toolscript.core.embedding.items import embed_items
from toolscript.core.errors import InvalidRequest, NotFound, SetupError, Unavailable
from toolscript.core.items import AssignedBy, Item
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Classification, Skill, Unclassified
from toolscript.core.values import OnProgress, Progress
from toolscript.server.settings import load_settings
from toolscript.server.skills import default_skills, open_classifier
from toolscript.tools.model.skill_json import skills_from_text
from toolscript.tools.ports import Classifier
from toolscript_eval.dataset import EvalResult
from toolscript_eval.label_accuracy import ClassifierReport, labels_report, reports_of, result_of
from toolscript_eval.labels import ClassifierName, Label, labelled_items, read_labels
from toolscript_eval.service import open_disk_cached

# A language model gets the items in the same batches each time, so that recorded answers are found.
BATCH = 100


@dataclass(frozen=True)
class ClassifiersRequest:
    """`data` has the datasets of the labels as folders. `taxonomy` None: the default skills; `split` "": all.

    `cassette` has the answers of the language model; `record` adds those that are missing.
    """

    labels: Path
    data: Path
    classifiers: Sequence[ClassifierName] = (ClassifierName.RULES,)
    split: str = ""
    taxonomy: Path | None = None
    model: str | None = None
    cassette: Path | None = None
    record: bool = False


def evaluate_classifiers(request: ClassifiersRequest, *, on_progress: OnProgress) -> EvalResult:
    async def run() -> EvalResult:
        settings = _settings(request)
        skills = _skills(request.taxonomy)
        labels = _of_split(read_labels(request.labels, [skill.id for skill in skills]), request.split)
        items = labelled_items(labels, request.data)
        reports: list[ClassifierReport] = []
        async with open_disk_cached(settings, on_progress) as embedder:
            for name in dict.fromkeys(request.classifiers):
                async with _open(name, request, settings, embedder) as classifier:
                    answers = await _classified(classifier, embedder, items, skills, on_progress)
                _require_model(name, answers)
                reports += reports_of(name, labels, answers)
        return result_of(labels_report(labels), reports, embedder.model.name)

    return asyncio.run(run())


def _settings(request: ClassifiersRequest) -> Settings:
    if request.record and request.cassette is None:
        raise InvalidRequest("there is no file to record to", hint="add --cassette FILE")
    settings = load_settings()
    return settings if request.model is None else settings.model_copy(update={"embedding_model": request.model})


def _skills(taxonomy: Path | None) -> list[Skill]:
    if taxonomy is None:
        return default_skills()
    try:
        return skills_from_text(taxonomy.read_text("utf-8"))
    except OSError as error:
        raise NotFound(
            f"cannot read {taxonomy}: {error.strerror}", hint="give a file that `toolscript skills export` wrote"
        ) from None


def _of_split(labels: Sequence[Label], split: str) -> Sequence[Label]:
    chosen = [label for label in labels if split in ("", label.split)]
    if not chosen:
        splits = ", ".join(sorted({label.split for label in labels} - {""})) or "none"
        raise InvalidRequest(f"no label has the split {split!r}", hint=f"the file has: {splits}")
    return chosen


@asynccontextmanager
async def _open(
    name: ClassifierName, request: ClassifiersRequest, settings: Settings, embedder: Embedder
) -> AsyncIterator[Classifier]:
    """Open the classifier that a worker would open with these settings."""
    if name is ClassifierName.RULES:
        settings = settings.model_copy(update={"text_url": ""})
    elif request.cassette is not None:
        async with _open_recorded(request.cassette, request.record, settings, embedder) as classifier:
            yield classifier
        return
    elif not settings.text_url:
        raise _unconfigured()
    async with open_classifier(settings, embedder) as classifying:
        yield classifying.classifier


def _unconfigured() -> SetupError:
    return SetupError(
        "no language model is configured",
        hint="set TOOLSCRIPT_TEXT_URL and TOOLSCRIPT_TEXT_MODEL, or give recorded answers: --cassette FILE",
    )


@asynccontextmanager
async def _open_recorded(
    path: Path, record: bool, settings: Settings, embedder: Embedder
) -> AsyncIterator[Classifier]:
    """Open the classifier by recorded answers. A recording is saved even if the endpoint fails halfway."""
    from httpx2 import AsyncHTTPTransport

    from toolscript.core.llm.cassette import REPLAY_URL, CassetteTransport, cassette_to_record, read_cassette

    if record:
        if not settings.text_url:
            raise _unconfigured()
        cassette = cassette_to_record(path, settings.text_model)
        transport = CassetteTransport(cassette, AsyncHTTPTransport())
    else:
        cassette = read_cassette(path)
        transport = CassetteTransport(cassette)
        settings = settings.model_copy(update={"text_url": REPLAY_URL, "text_model": cassette.model})
    try:
        async with open_classifier(settings, embedder, transport) as classifying:
            yield classifying.classifier
    finally:
        if record:
            cassette.save()
    cassette.require_complete()


async def _classified(
    classifier: Classifier,
    embedder: Embedder,
    items: Sequence[Item],
    skills: Sequence[Skill],
    on_progress: OnProgress,
) -> list[Classification]:
    answers: list[Classification] = []
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        vectors = await embed_items(embedder, batch)
        unclassified = [Unclassified(item, vector) for item, vector in zip(batch, vectors, strict=True)]
        answers += await classifier.classify(unclassified, skills)
        on_progress(Progress("classify", len(answers), len(items)))
    return answers


def _require_model(name: ClassifierName, answers: Sequence[Classification]) -> None:
    """Raise if the rules answered in place of the language model throughout: that is no measurement of it."""
    by_rules = all(
        assignment.source is AssignedBy.RULES for answer in answers for assignment in answer.assignments
    )
    if name is ClassifierName.LLM and by_rules and not any(answer.suggestion for answer in answers):
        raise Unavailable(
            "the language model classified no item: the rules did", hint="is TOOLSCRIPT_TEXT_URL reachable?"
        )
