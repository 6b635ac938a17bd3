"""The language of a request: which are recognised, and which texts stay English."""

import pytest

from toolscript.core.retrieval.language import foreign_language

OTHER_LANGUAGES: list[tuple[str, str]] = [
    ("Lege einen Termin für morgen früh in meinem Kalender an", "de"),
    ("Was hat sich im Repository seit gestern geändert?", "de"),
    ("zeig mir die offenen Pull Requests", "de"),
    ("supprime les vieilles branches du dépôt", "fr"),
    ("Envoie un message à l'équipe", "fr"),
    ("busca la palabra en todas las carpetas", "es"),
    ("¿Qué tiempo hará mañana en Sevilla?", "es"),
    ("cerca la parola in tutte le cartelle", "it"),
    ("procure a palavra em todas as pastas", "pt"),
    ("zoek het woord in alle mappen", "nl"),
    ("Utwórz spotkanie w kalendarzu na jutro", "pl"),
    ("Yarın hava nasıl olacak?", "tr"),
    ("Hur blir vädret i morgon?", "sv"),
    ("Tìm tất cả các tệp trong thư mục này", "vi"),
    ("Покажи все файлы в этой папке", "ru"),
    ("列出这个文件夹里的所有文件", "zh"),
    ("このフォルダのファイルを一覧にして", "ja"),
    ("이 폴더의 모든 파일을 보여줘", "ko"),
    ("اعرض كل الملفات في هذا المجلد", "ar"),
    ("Δείξε μου όλα τα αρχεία", "el"),
    ("แสดงไฟล์ทั้งหมดในโฟลเดอร์นี้", "th"),
    # Names of tools and things are often English.
    ("把 main 分支合并到 develop", "zh"),
    ("создай issue в репозитории acme/shop", "ru"),
]


def test_a_request_in_another_language_is_recognised(subtests: pytest.Subtests) -> None:
    for text, code in OTHER_LANGUAGES:
        with subtests.test(text=text, code=code):
            language = foreign_language(text)
            assert language is not None
            assert (language.code, language.is_certain) == (code, True)


ENGLISH: list[str] = [
    "read a file",
    "git stash pop",
    "delete repo webhook",
    "kubectl rollout restart deployment/nginx -n staging",
    "zapier zaps",
    "json schema validator",
    "grep todos in repo",
    "lookup the documetation of fastapi dependancy injecton",
    "asdf qwer",
    "x",
    "",
    "42",
    "browser_take_screenshot",
    "runShellCommand lesenUndSchreiben",
    "open /daten/müller/Übersicht/größe.txt",
    "book a flight from São Paulo to Düsseldorf with Señor García",
    "I'd like to listen to all tracks by Käärijä",
    "play songs by Björk, Sigur Rós and Mötley Crüe",
    "find a café near the Champs-Élysées",
    'translate "je ne sais pas pourquoi il est parti" into English',
    "what does 'das weiß ich leider auch nicht' mean",
    "Translate 你好，世界 into English for me",
    "how much is tan(9.17π) in radians, and what is Δx?",
    "send an e-mail to anna@beispiel.de about the Kühlschrank",
    "show the pull requests of https://github.com/straße/über-uns",
]


def test_what_is_english_short_or_code_is_not_called_another_language(subtests: pytest.Subtests) -> None:
    for text in ENGLISH:
        with subtests.test(text=text):
            language = foreign_language(text)
            assert language is None or not language.is_certain


def test_a_few_words_may_be_of_another_language() -> None:
    assert foreign_language("rename the file") is None
    language = foreign_language("Datei umbenennen")
    assert language is not None
    assert (language.code, language.is_certain) == ("de", False)


def test_a_script_is_named_where_it_does_not_tell_the_language() -> None:
    cyrillic, japanese = foreign_language("Покажи все файлы"), foreign_language("全てのファイルを表示する")
    assert cyrillic is not None
    assert "Cyrillic" in cyrillic.name
    assert japanese is not None
    assert japanese.name == "Japanese"


def test_a_long_request_is_judged_by_its_beginning() -> None:
    assert foreign_language("list the files of this folder " * 20 + "и покажи их мне " * 40) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [("crear un issue en github", "es"), ("lire un fichier", "fr"), ("liste les fichiers", "fr")],
)
def test_a_short_request_is_told_by_the_words_that_hold_sentences_together(text: str, code: str) -> None:
    language = foreign_language(text)
    assert language is not None
    assert (language.code, language.is_certain) == (code, True)


@pytest.mark.parametrize("text", ["directions to La Jolla", "what is a de facto standard", "make a new folder"])
def test_a_foreign_function_word_among_english_ones_tells_nothing(text: str) -> None:
    assert foreign_language(text) is None
