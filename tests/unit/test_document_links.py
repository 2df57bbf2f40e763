"""Which document a declared name means."""

from __future__ import annotations

import pytest

from services.ingest.document_links import Declared, Relation, Replaces, resolve

X, Y, Z = "file:///x/note.md", "file:///y/note.md", "file:///z.md"


def corpus(*names: str, relations: tuple[tuple[str, str, float, int], ...] = ()) -> list[Declared]:
    """Two documents of one base name, and one that declares names, each on line 2."""
    return [
        Declared(X, "x/note.md"),
        Declared(Y, "y/note.md"),
        Declared(Z, "z.md", tuple((name, 2) for name in names), relations),
    ]


@pytest.mark.parametrize("name", ["x/note"])
def test_a_full_path_means_one_of_several_of_its_name(name: str) -> None:
    found = resolve(corpus(name))
    assert found.replaces == (Replaces(Z, X, is_ambiguous=False),)
    assert found.problems == ()


def test_a_name_that_several_carry_is_ambiguous_for_each_and_told() -> None:
    found = resolve(corpus("note"))
    assert found.replaces == (
        Replaces(Z, X, is_ambiguous=True),
        Replaces(Z, Y, is_ambiguous=True),
    )
    ((uri, line, message),) = found.problems
    assert (uri, line) == (Z, 2)
    assert "write the full path" in message


@pytest.mark.parametrize("name", ["gone", "w/note"])
def test_a_name_that_nobody_carries_is_told_and_is_no_edge(name: str) -> None:
    found = resolve(corpus(name))
    assert found.replaces == ()
    assert [(uri, line) for uri, line, _ in found.problems] == [(Z, 2)]


def test_a_claim_on_itself_is_no_edge_and_told() -> None:
    found = resolve(corpus("z"))
    assert found.replaces == ()
    assert len(found.problems) == 1


def test_a_path_at_the_root_wins_over_the_same_name_in_a_folder() -> None:
    documents = [
        *corpus(),
        Declared("file:///note.md", "note.md"),
        Declared("n", "n.md", (("note", 2),)),
    ]
    assert resolve(documents).replaces == (Replaces("n", "file:///note.md", is_ambiguous=False),)


def test_relations_are_resolved_and_an_ambiguous_one_is_told() -> None:
    declared = (("supports", "x/note", 0.5, 3), ("references", "note", 1.0, 4))
    found = resolve(corpus(relations=declared))
    assert found.relations == (Relation(Z, "supports", X, 0.5),)
    assert [(uri, line) for uri, line, _ in found.problems] == [(Z, 4)]
