"""The head of a document: what its author declares about it. Pure; nothing is ever silent.

A head is a block between two lines of "---" at the very beginning that YAML reads as a mapping of
plain keys. Anything else between such lines is text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import yaml

RELATIONS = ("supports", "references", "depends_on", "caused", "supersedes")
MAX_TYPE_CHARACTERS = 64
MAX_DEPTH = 8
_KEY = re.compile(r"[A-Za-z_][\w-]*")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FACT_KEYS = ("namespace", "subject", "predicate", "object")
_FACT_OPTIONS = ("context", "valid_from", "valid_until")
_RELATION_KEYS = {"relation", "target", "confidence"}
_MEANT = {
    "superseded_by": "write `supersedes` in the newer document instead",
    "expires": "write `valid_until`",
    "valid_to": "write `valid_until`",
}


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Neither aliases, which can stand for endless text, nor deep nesting."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not read", mark)
        if self._depth == MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, "it is nested too deep", mark)
        self._depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


@dataclass(frozen=True)
class Problem:
    """Something that the author should mend. ``line`` counts from 1 in the whole document."""

    line: int
    message: str


@dataclass(frozen=True)
class Head:
    """What a head declares. ``supersedes`` and ``depends_on`` are names or paths as written, with
    their lines. ``invalid`` says why validity can not be read."""

    title: str = ""
    document_type: str = ""
    valid_from: date | None = None
    valid_until: date | None = None
    invalid: str = ""
    supersedes: tuple[tuple[str, int], ...] = ()
    depends_on: tuple[tuple[str, int], ...] = ()
    facts: tuple[dict[str, str], ...] = ()
    relations: tuple[tuple[str, str, float, int], ...] = ()
    problems: tuple[Problem, ...] = field(default=())


def split(text: str) -> tuple[Head, str]:
    """The head of a document and the text after it. A document without a head has an empty one."""
    text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return Head(), text
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return Head(), text
    try:
        node = yaml.compose("\n".join(lines[1:end]), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark.line if error.problem_mark else 0) + 2
        return _unreadable(line, error.problem or "", lines, end, text)
    except yaml.reader.ReaderError as error:
        line = "\n".join(lines[: end + 1])[: error.position + 4].count("\n") + 1
        return _unreadable(line, "it holds a control character", lines, end, text)
    if not isinstance(node, yaml.MappingNode) or not _is_head(node):
        return Head(), text
    return _head(node), "\n".join(lines[end + 1 :])


def names_of(name: str) -> str:
    """A name as edges compare it: without brackets and without ``.md``."""
    return name.strip().strip("[]").strip().removesuffix(".md")


def _unreadable(line: int, problem: str, lines: list[str], end: int, text: str) -> tuple[Head, str]:
    """A block that was meant as a head but is no YAML is a fault; any other block is text."""
    meant = all(
        not line.strip() or re.match(r"\s|- |#|[A-Za-z_][\w-]*:", line) for line in lines[1:end]
    )
    if not meant or not any(_KEY.match(line) and ":" in line for line in lines[1:end]):
        return Head(), text
    message = f"the head is no YAML: {problem}"
    return Head(invalid=message, problems=(Problem(line, message),)), "\n".join(lines[end + 1 :])


def _is_head(node: yaml.MappingNode) -> bool:
    """Whether it holds a key that is known, or nothing but plain keys."""
    keys = [str(key.value) for key, _ in node.value]
    return any(key in _READERS for key in keys) or (
        bool(keys) and all(_KEY.fullmatch(key) for key in keys)
    )


def _head(node: yaml.MappingNode) -> Head:
    head = Head()
    seen: set[str] = set()
    for key, value in node.value:
        line, name = key.start_mark.line + 2, str(key.value)
        if name in seen:
            head = _with(head, line, f"`{name}` stands twice")
        seen.add(name)
        read = _READERS.get(name)
        head = read(head, value, line) if read else _with(head, line, _unknown(name))
    if head.valid_from and head.valid_until and head.valid_until < head.valid_from:
        message = "`valid_until` is before `valid_from`"
        head = replace(_with(head, 1, message), invalid=message)
    return head


def _unknown(key: str) -> str:
    if key in _MEANT:
        return f"`{key}` is not read: {_MEANT[key]}"
    near = difflib.get_close_matches(key, _READERS, 1)
    return f"`{key}` is not known" + (f"; did you mean `{near[0]}`?" if near else "")


def _with(head: Head, line: int, message: str) -> Head:
    return replace(head, problems=(*head.problems, Problem(line, message)))


def _read_day(name: str) -> Callable[[Head, yaml.Node, int], Head]:
    def read(head: Head, value: yaml.Node, line: int) -> Head:
        day = _day(value.value if isinstance(value, yaml.ScalarNode) else "")
        if day is None:
            message = f"`{name}` is no day; write it as 2026-03-31"
            return replace(_with(head, line, message), invalid=message)
        return replace(head, **{name: day})  # type: ignore[arg-type]

    return read


def _day(text: str) -> date | None:
    if not _DAY.fullmatch(text.strip()):
        return None
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        return None


def _read_text(name: str, limit: int) -> Callable[[Head, yaml.Node, int], Head]:
    def read(head: Head, value: yaml.Node, line: int) -> Head:
        if not isinstance(value, yaml.ScalarNode) or len(value.value) > limit:
            return _with(head, line, f"`{name}` must be one line of at most {limit} characters")
        field_name = "document_type" if name == "type" else name
        return replace(head, **{field_name: value.value.strip()})

    return read


def _read_names(name: str) -> Callable[[Head, yaml.Node, int], Head]:
    def read(head: Head, value: yaml.Node, line: int) -> Head:
        found = tuple(_scalars(value))
        if not found or not all(names_of(text) for text, _ in found):
            return _with(head, line, f"`{name}` must name a document, or list some")
        return replace(head, **{name: tuple((names_of(t), n) for t, n in found)})  # type: ignore[arg-type]

    return read


def _scalars(node: yaml.Node) -> Iterator[tuple[str, int]]:
    """Scalars of a node, lists of lists too: YAML reads [[name]] as one."""
    if isinstance(node, yaml.ScalarNode):
        yield node.value, node.start_mark.line + 2
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _scalars(each)


def _read_facts(head: Head, value: yaml.Node, line: int) -> Head:
    facts: list[dict[str, str]] = []
    for row, at in _mappings(value):
        wrong = _fact_fault(row)
        if wrong:
            head = _with(head, at, f"a fact {wrong}")
        else:
            facts.append(row)
    if not facts and not head.problems:
        head = _with(head, line, "`facts` must list facts with " + ", ".join(_FACT_KEYS))
    return replace(head, facts=tuple(facts))


def _fact_fault(row: dict[str, str]) -> str:
    missing = [key for key in _FACT_KEYS if not row.get(key)]
    if missing:
        return f"lacks `{missing[0]}`"
    odd = [key for key in row if key not in (*_FACT_KEYS, *_FACT_OPTIONS)]
    if odd:
        return f"has `{odd[0]}`, which is not known"
    bad = [key for key in ("valid_from", "valid_until") if row.get(key) and _day(row[key]) is None]
    return f"has a `{bad[0]}` that is no day; write it as 2026-03-31" if bad else ""


def _read_relations(head: Head, value: yaml.Node, line: int) -> Head:
    relations: list[tuple[str, str, float, int]] = []
    for row, at in _mappings(value):
        relation, target = row.get("relation", ""), names_of(row.get("target", ""))
        confidence = _share(row.get("confidence", "1"))
        odd = set(row) - _RELATION_KEYS
        if relation not in RELATIONS or not target or confidence is None or odd:
            head = _with(
                head,
                at,
                f"a relation needs `relation` ({', '.join(RELATIONS)}), `target`, and a "
                "`confidence` from 0 to 1 if any; nothing else",
            )
        else:
            relations.append((relation, target, confidence, at))
    if not relations and not head.problems:
        head = _with(head, line, "`relations` must list relations")
    return replace(head, relations=tuple(relations))


def _mappings(node: yaml.Node) -> Iterator[tuple[dict[str, str], int]]:
    """Each mapping of a list with its line; what is no text in it is left out."""
    for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
        line = each.start_mark.line + 2
        pairs = each.value if isinstance(each, yaml.MappingNode) else ()
        yield (
            {
                str(key.value): value.value.strip()
                for key, value in pairs
                if isinstance(value, yaml.ScalarNode)
            },
            line,
        )


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None


_READERS: dict[str, Callable[[Head, yaml.Node, int], Head]] = {
    "title": _read_text("title", 200),
    "type": _read_text("type", MAX_TYPE_CHARACTERS),
    "valid_from": _read_day("valid_from"),
    "valid_until": _read_day("valid_until"),
    "supersedes": _read_names("supersedes"),
    "depends_on": _read_names("depends_on"),
    "facts": _read_facts,
    "relations": _read_relations,
}
