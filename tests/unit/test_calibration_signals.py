"""The words of a question and the signals that are made of what was read, by tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.calibration import signals as names
from services.retrieve.question_words import QuestionWords, question_words, stem_query
from services.retrieve.signal_values import Reading, measure, word_weights


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "Who fixed the 28P01 failure in INC-4821?",
            QuestionWords(
                ("fixed", "28p01", "failure", "inc", "4821"),
                ("28p01", "'inc-4821' | inc & 4821"),
                ("INC-4821",),
            ),
        ),
        # A possessive names the person; an @ does in lower case.
        (
            "What did Linnea's sister say to @tomo.sato about soup?",
            QuestionWords(
                ("linnea", "sister", "say", "tomo", "sato", "soup"), (), ("Linnea", "tomo.sato")
            ),
        ),
        (
            "What did Linnea\u2019s sister say?",
            QuestionWords(("linnea", "sister", "say"), (), ("Linnea",)),
        ),
        # A number alone is no identifier.
        ("What is the plan for 2026?", QuestionWords(("plan", "2026"), (), ())),
        # Neither is a name with a hyphen.
        (
            "When did Karl-Heinz come?",
            QuestionWords(("karl", "heinz", "come"), (), ("Karl-Heinz",)),
        ),
        # A name is told once, a stop word never is one.
        ("Ines, did Ines go?", QuestionWords(("ines", "go"), (), ("Ines",))),
        ("The of AND", QuestionWords((), (), ())),
        ("", QuestionWords((), (), ())),
    ],
)
def test_the_words_of_a_question(question: str, expected: QuestionWords) -> None:
    assert question_words(question) == expected


@pytest.mark.parametrize(
    ("word", "stem", "expected"),
    [
        ("running", "run", "'run':*"),
        ("soup", "soup", "'soup':*"),
        # Too short to be a prefix of anything in particular.
        ("go", "go", "'go'"),
        # The stem is no prefix of the word, or no plain word.
        ("mice", "mous", "'mice'"),
        ("v1.2", "v1.2", "'v1.2'"),
    ],
)
def test_a_word_is_asked_for_in_every_form_of_its_stem(word: str, stem: str, expected: str) -> None:
    assert stem_query(word, stem) == expected


READING = Reading(
    hits=["m1", "m2", "m3"],
    extras=[],
    cosines={"m1": 0.6, "m2": 0.9, "m3": 0.8},
    chunks_with={"crane": 1, "bergen": 1, "monday": 100},
    chunk_count=100,
    words_of={"m1": {"crane", "bergen"}, "m2": {"monday"}},
    identifiers=[],
    identifiers_of={},
    in_lexical={"m1", "m3"},
    firsts=(["m1", "m2"], ["m1", "m3"]),
    authors={"m1": "U1", "m2": "U2", "m3": "U1"},
)


def of_question(**changes: object) -> dict[str, float]:
    return measure(replace(READING, **changes)).question  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "name", "expected"),
    [
        ({}, names.BEST_COSINE, 0.9),
        ({}, names.COSINE_MARGIN, 0.1),
        # A word in every chunk weighs next to nothing; two rare ones share the rest.
        ({}, names.BEST_COVERAGE, 0.9994),
        ({}, names.JOINT_COVERAGE, 1.0),
        ({"words_of": {"m1": {"crane"}, "m2": {"bergen"}}}, names.BEST_COVERAGE, 0.4997),
        ({"words_of": {"m1": {"crane"}, "m2": {"bergen"}}}, names.JOINT_COVERAGE, 0.9994),
        ({"words_of": {}}, names.BEST_COVERAGE, 0.0),
        # Shares of the rarity that no chunk holds.
        ({}, names.UNSEEN_RARITY, 0.0),
        ({"chunks_with": {"crane": 0, "bergen": 0}}, names.UNSEEN_RARITY, 1.0),
        ({"chunks_with": {"crane": 0, "monday": 100}}, names.UNSEEN_RARITY, 0.9991),
        # Of the first ten of each arm.
        ({}, names.ARM_AGREEMENT, 0.5),
        ({"firsts": ([], [])}, names.ARM_AGREEMENT, 0.0),
        ({"firsts": (["a"], ["a"])}, names.ARM_AGREEMENT, 1.0),
        (
            {"firsts": ([f"d{n}" for n in range(10)] + ["x"], ["x"])},
            names.ARM_AGREEMENT,
            0.0,
        ),
        ({}, names.IDENTIFIER_ASKED, 0.0),
        ({}, names.IDENTIFIER_FOUND, 0.0),
        ({}, names.AUTHOR_NAMED, 0.0),
        ({}, names.AUTHOR_SHARE, 0.0),
    ],
)
def test_a_signal_of_the_question(changes: dict[str, object], name: str, expected: float) -> None:
    assert of_question(**changes)[name] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"cosines": {}}, {names.BEST_COSINE, names.COSINE_MARGIN}),
        ({"cosines": {"m1": 0.5}}, {names.COSINE_MARGIN}),
        (
            {"chunks_with": {}},
            {names.BEST_COVERAGE, names.JOINT_COVERAGE, names.UNSEEN_RARITY},
        ),
        (
            {"hits": []},
            {
                *(names.BEST_COSINE, names.COSINE_MARGIN),
                *(names.BEST_COVERAGE, names.JOINT_COVERAGE),
            },
        ),
    ],
)
def test_what_can_not_be_measured_is_missing_and_not_zero(
    changes: dict[str, object], missing: set[str]
) -> None:
    assert set(names.QUESTION_SIGNALS) - set(of_question(**changes)) == missing


ASKED = {"identifiers": ["28p01", "e4711"]}


@pytest.mark.parametrize(
    ("held", "lexical", "expected"),
    [
        ({"m1": {"28p01", "e4711"}}, {"m1"}, 1.0),
        ({"m1": {"28p01"}}, {"m1"}, 0.5),
        # Each in another message: no one message holds both.
        ({"m1": {"28p01"}, "m2": {"e4711"}}, {"m1", "m2"}, 0.5),
        # What only the dense arm found resembles an identifier.
        ({"m1": {"28p01", "e4711"}}, {"m2"}, 0.0),
        ({}, {"m1"}, 0.0),
    ],
)
def test_identifiers_count_where_the_lexical_arm_found_them(
    held: dict[str, set[str]], lexical: set[str], expected: float
) -> None:
    found = of_question(**ASKED, identifiers_of=held, in_lexical=lexical)
    assert (found[names.IDENTIFIER_ASKED], found[names.IDENTIFIER_FOUND]) == (1.0, expected)


def test_who_wrote_it_counts_when_one_person_is_named() -> None:
    found = measure(replace(READING, named_author="U1", named_coverage=0.75, other_coverage=0.5))
    told = found.question
    assert told[names.AUTHOR_NAMED] == 1.0
    assert told[names.AUTHOR_COVERAGE] == 0.75
    assert told[names.AUTHOR_MARGIN] == 0.25
    # Ranks 1 and 3 of three: (1 + 1/3) / (1 + 1/2 + 1/3).
    assert told[names.AUTHOR_SHARE] == pytest.approx(8 / 11)
    assert [hit[names.BY_NAMED_AUTHOR] for hit in found.hits] == [1.0, 0.0, 1.0]


def test_what_replaces_a_hit_is_measured_and_changes_nothing_of_the_question() -> None:
    plain = measure(READING)
    more = measure(
        replace(
            READING,
            extras=["m9"],
            cosines={**READING.cosines, "m9": 0.99},
            words_of={**READING.words_of, "m9": {"crane", "bergen", "monday"}},
        )
    )
    assert more.question == plain.question
    assert more.hits[:3] == plain.hits
    assert more.hits[3][names.COSINE] == 0.99
    assert more.hits[3][names.COVERAGE] == pytest.approx(1.0)


counts = st.dictionaries(st.text(min_size=1, max_size=4), st.integers(0, 500), max_size=8)


@given(counts)
def test_weights_of_words_share_one_and_rarer_ones_weigh_more(counted: dict[str, int]) -> None:
    weights = word_weights(counted, 500)
    if not counted:
        assert weights == {}
        return
    assert sum(weights.values()) == pytest.approx(1.0)
    ordered = sorted(counted, key=counted.__getitem__)
    assert all(weights[rarer] >= weights[other] for rarer, other in pairwise(ordered))
