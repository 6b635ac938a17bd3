"""Who says which skills an item is in: rules, a language model, or the one when the other cannot."""

from toolscript.sync.classify.fallback import FallbackClassifier
from toolscript.sync.classify.llm import LlmClassifier
from toolscript.sync.classify.rules import RulesClassifier

__all__ = ["FallbackClassifier", "LlmClassifier", "RulesClassifier"]
