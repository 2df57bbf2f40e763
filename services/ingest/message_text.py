"""All words of a Slack message: the richer of text and blocks, then attachments, then files.

What Slack shows of a link is not the author's: it stands in lines that begin with ``> ``, the first
of them with ``> Linked page: `` (``> Linked message: `` for another message).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from services.corpus import LINKED_MESSAGE, LINKED_PAGE
from services.ingest.blocks import MAX_DEPTH, Json, blocks_text, dicts, string
from services.ingest.markup import (
    UNKNOWN_CHANNEL,
    UNKNOWN_GROUP,
    UNKNOWN_PERSON,
    Names,
    decode_entities,
    link,
    plain,
    storable,
    without_tokens,
)

_NO_PREVIEW = "[no preview available]"
_UNKNOWN = re.compile("|".join((UNKNOWN_PERSON, UNKNOWN_CHANNEL, UNKNOWN_GROUP)))
_WORD = re.compile(r"\w+")


def readable_text(record: Json, names: Names) -> str:
    """All words of one Slack message, readable and storable; empty when it has none.

    Nothing is said twice: words of an attachment or a file that the text before holds already
    are left out.
    """
    gathered = _Gathered()
    blocks = blocks_text(dicts(record.get("blocks")), names)
    gathered.add(_richer(_mrkdwn(record.get("text"), names), blocks))
    for attachment in dicts(record.get("attachments")):
        before = gathered.count()
        _add_attachment(gathered, attachment, names, depth=0)
        if attachment.get("from_url") or attachment.get("original_url"):
            is_message = attachment.get("is_msg_unfurl") or attachment.get("is_share")
            gathered.quote_since(before, LINKED_MESSAGE if is_message else LINKED_PAGE)
    for file in files_of(record):
        _add_file(gathered, file, names)
    return without_tokens(storable(gathered.text())).strip()


def files_of(record: Json) -> list[Json]:
    """The message's files, of ``files`` and of the older ``file``."""
    return dicts(record.get("files")) + dicts([record.get("file")])


def file_title(file: Json) -> str:
    """A file's title or name; empty for a stub that kept neither."""
    return decode_entities(string(file.get("title")).strip() or string(file.get("name")).strip())


class _Gathered:
    """Pieces of text, none of which repeats words that stand in an earlier one."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._words = " "

    def add(self, piece: str, news: str = "") -> bool:
        """Add a piece unless ``news``, its part that matters (default: all of it), is known.

        Tells whether the piece had any text.
        """
        piece = piece.strip()
        if not piece:
            return False
        news_words = _spaced_words(news or piece)
        known = news_words in self._words if news_words.strip() else piece in self._pieces
        if not known:
            self._pieces.append(piece)
            self._words += _spaced_words(piece)
        return True

    def count(self) -> int:
        return len(self._pieces)

    def quote_since(self, position: int, label: str) -> None:
        """Mark the pieces from ``position`` on as others' words."""
        if text := "\n".join(self._pieces[position:]):
            self._pieces[position:] = ["> " + f"{label}: {text}".replace("\n", "\n> ")]

    def text(self) -> str:
        return "\n".join(self._pieces)


def _spaced_words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _richer(text: str, other: str) -> str:
    """The one that holds all words of both; both when neither does. Of equals, the first.

    A name that only one of the two knows does not count against the other.
    """
    words, other_words = _word_counts(text), _word_counts(other)
    if other_words <= words:
        return text or other
    return other if words <= other_words else f"{text}\n{other}"


def _word_counts(text: str) -> Counter[str]:
    return Counter(_WORD.findall(_UNKNOWN.sub(" ", text).casefold()))


def _mrkdwn(value: object, names: Names) -> str:
    return plain(string(value), names).strip()


def _add_attachment(gathered: _Gathered, attachment: Json, names: Names, depth: int) -> None:
    said = [gathered.add(*piece) for piece in _attachment_pieces(attachment, names, gathered)]
    for inner in dicts(attachment.get("attachments")) if depth < MAX_DEPTH else []:
        _add_attachment(gathered, inner, names, depth + 1)
    said += [_add_file(gathered, file, names) for file in files_of(attachment)]
    if not any(said) and not (_is_preview(attachment) and gathered.text()):
        fallback = _mrkdwn(attachment.get("fallback"), names)
        gathered.add("" if fallback == _NO_PREVIEW else fallback)


def _is_preview(attachment: Json) -> bool:
    """Whether Slack made it of a link: its fallback ("800x600px image") adds nothing to text."""
    return bool(attachment.get("from_url") or attachment.get("image_url"))


def _attachment_pieces(
    attachment: Json, names: Names, before: _Gathered
) -> Iterator[tuple[str, str]]:
    """Pieces of an attachment, each with its part that matters (empty: all of it)."""
    yield _mrkdwn(attachment.get("pretext"), names), ""
    title = _mrkdwn(attachment.get("title"), names)
    address = decode_entities(string(attachment.get("title_link")))
    is_new_address = title and address and address not in before.text()
    yield (link(address, title) if is_new_address else title), title
    blocks = [*dicts(attachment.get("blocks")), *_shared_blocks(attachment)]
    body = _richer(_mrkdwn(attachment.get("text"), names), blocks_text(blocks, names))
    author = _mrkdwn(attachment.get("author_name"), names)
    yield ": ".join(part for part in (author, body) if part), body
    for field in dicts(attachment.get("fields")):
        words = (_mrkdwn(field.get(key), names) for key in ("title", "value"))
        yield ": ".join(part for part in words if part), ""


def _shared_blocks(attachment: Json) -> list[Json]:
    """Blocks of a message that was shared into this one."""
    shared = [entry.get("message") for entry in dicts(attachment.get("message_blocks"))]
    return [block for message in dicts(shared) for block in dicts(message.get("blocks"))]


def _add_file(gathered: _Gathered, file: Json, names: Names) -> bool:
    title = file_title(file)
    comment = file.get("initial_comment")
    words = _mrkdwn(comment.get("comment"), names) if isinstance(comment, dict) else ""
    said = gathered.add(f"File: {title}" if title else "", title)
    return gathered.add(words) or said
