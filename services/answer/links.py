"""Removes every link that does not stand verbatim in a cited message.

Labels stay as text. All forms count: inline, image, reference style, autolink, Slack's
``<url|label>``, HTML tags, bare addresses with any scheme, and bare domains. A link that stands in
a cited message stays (an image becomes an ordinary link, so that nothing is loaded by itself).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

REMOVED = "(link removed)"

_KEPT_OPEN, _KEPT_CLOSE = "\ue002", "\ue003"
_KEPT = re.compile(f"{_KEPT_OPEN}(\\d+){_KEPT_CLOSE}")
_STOP = r"\s<>\"“”«»`\ue000-\ue003"

_INLINE = re.compile(
    r"!?\[([^\[\]]*)\]\(\s*(?:<([^<>\n]*)>|((?:[^()\s]|\([^()\s]*\))*))"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
)
_DEFINITION = re.compile(
    r"^[ \t]*\[([^\[\]\n]+)\]:[ \t]*<?([^\s<>\ue000-\ue003]*[:/.#][^\s<>\ue000-\ue003]*)>?"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$\n?",
    re.MULTILINE,
)
_REFERENCE = re.compile(r"!?\[([^\[\]\n]+)\](?:[ \t]?\[([^\[\]\n]*)\])?")
_ANGLED = re.compile(r"<((?:[a-z][a-z0-9+.\-]*:|[^\s<>@|]+@)[^\s<>|]*)(?:\|([^<>\n]*))?>", re.I)
_TAG = re.compile(
    r"</?(?:a|img|iframe|script|link|object|embed|video|audio|source|form|svg|base|meta)\b[^<>]*>",
    re.IGNORECASE,
)
_SCHEMED = (
    rf"(?:[a-z][a-z0-9+.\-]*://|(?:java|vb|live)script:|data:[\w/+.\-]*[;,]|mailto:|file:/|"
    rf"(?:tel|sms):(?=\+?\d)|//(?=[\w\-]+\.))[^{_STOP}]*"
)
_DOMAIN = (
    r"(?:[\w.+\-]{1,64}@)?(?:[^\W_](?:[\w\-]{0,62}[^\W_])?\.)+[^\W\d_]{2,24}"
    rf"(?::\d+)?(?:[/?#][^{_STOP}]*)?"
)
_BARE = re.compile(rf"(?<![\w@/.\-\\])(?:{_SCHEMED}|{_DOMAIN})", re.IGNORECASE)

# A bare word with a dot is a link only with one of these endings; with a path, always. Endings
# that are usual file extensions (md, py, sh, rs, …) are no links alone.
_GENERIC = re.compile(
    r"com|org|net|edu|gov|mil|int|info|biz|name|pro|mobi|app|dev|cloud|online|site|shop|store|blog|"
    r"tech|xyz|top|club|live|link|click|page|web|wiki|news|space|website|zone|world|today|email|"
    r"test|example|invalid|local|internal|onion"
)
_FILE_EXTENSION = re.compile(
    r"md|py|sh|rs|pl|cc|so|ps|ml|mk|vi|hs|js|ts|go|rb|db|kt|cs|vb|gz|xz|7z"
)
_TRAILING = ".,;:!?'*_~…"


def links_of(text: str) -> frozenset[str]:
    """The links of a message, as they would have to be repeated to survive."""
    return frozenset(text[start:end] for start, end in _bare_links(text))


def without_foreign_links(text: str, cited_texts: Iterable[str]) -> str:
    """``text`` with every link that is in none of ``cited_texts`` removed; labels stay."""
    allowed = frozenset().union(*(links_of(cited) for cited in cited_texts))
    kept: list[str] = []

    def keep(link: str) -> str:
        kept.append(link)
        return f"{_KEPT_OPEN}{len(kept) - 1}{_KEPT_CLOSE}"

    def inline(label: str, url: str) -> str:
        plain = _without_bare(label, allowed, lambda link: link).strip()
        if url not in allowed:
            return plain
        return keep(f"[{plain}]({url})") if plain else keep(url)

    text = _without_references(text, inline)
    text = _until_stable(
        text, lambda now: _INLINE.sub(lambda f: inline(f[1], f[2] or f[3] or ""), now)
    )
    text = _TAG.sub("", _ANGLED.sub(lambda f: _angled(f, allowed, inline, keep), text))
    text = _without_bare(text.replace("](", "] ("), allowed, keep)
    return _until_stable(text, lambda now: _KEPT.sub(lambda found: kept[int(found[1])], now))


def _without_references(text: str, inline: Callable[[str, str], str]) -> str:
    targets = {found[1].casefold(): found[2] for found in _DEFINITION.finditer(text)}
    if not targets:
        return text

    def resolved(found: re.Match[str]) -> str:
        name = (found[2] or found[1]).casefold()
        return inline(found[1], targets[name]) if name in targets else found.group()

    return _REFERENCE.sub(resolved, _DEFINITION.sub("", text))


def _angled(
    found: re.Match[str],
    allowed: Collection[str],
    inline: Callable[[str, str], str],
    keep: Callable[[str], str],
) -> str:
    if found[2]:
        return inline(found[2], found[1])
    return keep(found[1]) if found[1] in allowed else REMOVED


def _without_bare(text: str, allowed: Collection[str], keep: Callable[[str], str]) -> str:
    pieces, position = [], 0
    for start, end in _bare_links(text):
        link = text[start:end]
        pieces += [text[position:start], keep(link) if link in allowed else REMOVED]
        position = end
    return "".join([*pieces, text[position:]])


def _bare_links(text: str) -> list[tuple[int, int]]:
    spans = []
    for found in _BARE.finditer(text):
        link = _trimmed(found.group())
        if _is_link(link):
            spans.append((found.start(), found.start() + len(link)))
    return spans


def _trimmed(link: str) -> str:
    """Without the punctuation of the sentence around it; balanced brackets stay."""
    while link:
        last = link[-1]
        unbalanced = last in ")]}" and link.count(last) > link.count("([{"[")]}".index(last)])
        if last not in _TRAILING and not unbalanced:
            break
        link = link[:-1]
    return link


def _is_link(link: str) -> bool:
    host = re.match(r"[^:/?#]*", link)
    if re.match(r"[a-z][a-z0-9+.\-]*:(?!\d)|//|www\.|[^/]*@", link, re.IGNORECASE):
        return True
    if host is None or len(host.group()) < len(link):
        return True
    ending = link.rsplit(".", 1)[-1].lower()
    if _GENERIC.fullmatch(ending):
        return True
    return len(ending) == 2 and not _FILE_EXTENSION.fullmatch(ending)


def _until_stable(text: str, step: Callable[[str], str]) -> str:
    while (after := step(text)) != text:
        text = after
    return text
