"""How many tokens a text has for a model, however many of them it reads."""

from tokenizers import Tokenizer


class TokenCounter:
    """Of a tokenizer that cuts and fills what it is given: with a copy that does neither."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def __call__(self, text: str) -> int:
        """Without those that the model wants around every text."""
        encodable = text.encode("utf-8", "replace").decode()
        return len(self._tokenizer.encode(encodable, add_special_tokens=False).ids)
