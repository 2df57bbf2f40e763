"""Which document a name means: edges between the documents of one generation. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.ingest.frontmatter import names_of


@dataclass(frozen=True)
class Declared:
    """What one document declares: names it replaces, with their lines, and its relations."""

    uri: str
    path: str
    supersedes: tuple[tuple[str, int], ...] = ()
    relations: tuple[tuple[str, str, float, int], ...] = ()


@dataclass(frozen=True)
class Replaces:
    """``newer`` replaces ``older``; several documents carry the declared name when ambiguous."""

    newer: str
    older: str
    is_ambiguous: bool


@dataclass(frozen=True)
class Relation:
    """An authored relation between two documents, with its confidence (0 to 1)."""

    uri: str
    relation: str
    target: str
    confidence: float


@dataclass(frozen=True)
class Resolved:
    """The edges, and the names that mean no document or several: (uri, line, what is wrong)."""

    replaces: tuple[Replaces, ...]
    relations: tuple[Relation, ...]
    problems: tuple[tuple[str, int, str], ...]


class Names:
    """Documents by full path and by base name; a full path wins over a base name."""

    def __init__(self, documents: Iterable[Declared]) -> None:
        self._by_path: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for each in documents:
            path = names_of(each.path)
            self._by_path[path] = each.uri
            self._by_name[path.rsplit("/", 1)[-1]].append(each.uri)

    def meant(self, name: str, by: str) -> list[str]:
        """URIs that a name means, without the document that says it."""
        if name in self._by_path:
            found = [self._by_path[name]]
        else:
            found = self._by_name.get(name, []) if "/" not in name else []
        return [uri for uri in found if uri != by]


def resolve(documents: Sequence[Declared]) -> Resolved:
    """Every edge that the documents declare. A claim on itself is no edge."""
    names = Names(documents)
    replaces: list[Replaces] = []
    relations: list[Relation] = []
    problems: list[tuple[str, int, str]] = []
    for each in documents:
        for name, line in each.supersedes:
            found = names.meant(name, each.uri)
            problems += _problems(each.uri, "supersedes", name, line, found)
            replaces += [Replaces(each.uri, uri, len(found) > 1) for uri in found]
        for relation, name, confidence, line in each.relations:
            found = names.meant(name, each.uri)
            problems += _problems(each.uri, relation, name, line, found)
            if len(found) == 1:
                relations.append(Relation(each.uri, relation, found[0], confidence))
    return Resolved(tuple(replaces), tuple(relations), tuple(problems))


def _problems(
    uri: str, key: str, name: str, line: int, found: Sequence[str]
) -> list[tuple[str, int, str]]:
    if not found:
        return [(uri, line, f"`{key}` names {name!r}, which no other document here is called")]
    if len(found) > 1:
        return [
            (
                uri,
                line,
                f"`{key}` names {name!r}, and {len(found)} documents are called so; write "
                "the full path",
            )
        ]
    return []
