"""What a confidence means: of a question and of its hits."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.calibration import signals as names
from services.calibration.model import (
    CalibrationModel,
    ModelError,
    contributions,
    digest,
    from_json,
    hit_confidences,
    is_enough,
    question_confidence,
    support,
    to_json,
)

MODEL = CalibrationModel(
    "logistic",
    threshold=0.6,
    intercept=-0.5,
    weights={names.BEST_COSINE: 2.0, names.BEST_COVERAGE: 1.0, names.AUTHOR_MARGIN: 1.5},
    means={names.BEST_COSINE: 0.5, names.BEST_COVERAGE: 0.5, names.AUTHOR_MARGIN: 0.0},
    scales={names.BEST_COSINE: 0.1, names.BEST_COVERAGE: 0.2, names.AUTHOR_MARGIN: 0.2},
    support_floor=0.5,
)

share = st.floats(0, 1)
hits = st.lists(
    st.fixed_dictionaries(
        {
            names.COSINE: share,
            names.COVERAGE: share,
            names.IDENTIFIERS: st.sampled_from([0.0, 0.5, 1.0]),
            names.BY_NAMED_AUTHOR: st.sampled_from([0.0, 1.0]),
        }
    ),
    min_size=1,
    max_size=12,
)
weights = st.floats(-3, 3)


@st.composite
def models(draw: st.DrawFn) -> CalibrationModel:
    return replace(
        MODEL,
        threshold=draw(st.floats(0.01, 0.99)),
        intercept=draw(weights),
        weights={name: draw(weights) for name in MODEL.weights},
        support_floor=draw(share),
    )


def asked_for(found: list[dict[str, float]], margin: float) -> dict[str, float]:
    """What a question's signals are when these are its hits'."""
    return {
        names.BEST_COSINE: max(hit[names.COSINE] for hit in found),
        names.BEST_COVERAGE: max(hit[names.COVERAGE] for hit in found),
        names.IDENTIFIER_FOUND: max(hit[names.IDENTIFIERS] for hit in found),
        names.AUTHOR_NAMED: 1.0,
        names.AUTHOR_MARGIN: margin,
    }


@given(models(), hits, st.floats(-1, 1))
def test_no_hit_is_more_confident_than_its_question(
    model: CalibrationModel, found: list[dict[str, float]], margin: float
) -> None:
    signals = asked_for(found, margin)
    confidence = question_confidence(model, signals)
    for each in hit_confidences(model, signals, found):
        assert 0.0 <= each <= confidence + 1e-12


@given(models(), hits, st.floats(-1, 1))
def test_the_best_supported_hit_is_as_confident_as_its_question(
    model: CalibrationModel, found: list[dict[str, float]], margin: float
) -> None:
    signals = asked_for(found, margin)
    supports = [support(model, signals, hit) for hit in found]
    confidences = hit_confidences(model, signals, found)
    best = confidences[supports.index(max(supports))]
    assert best == pytest.approx(question_confidence(model, signals))


@given(models(), hits, st.floats(-1, 1))
def test_below_the_floor_no_hit_reaches_the_threshold_and_above_it_each_does(
    model: CalibrationModel, found: list[dict[str, float]], margin: float
) -> None:
    signals = asked_for(found, margin)
    supports = [support(model, signals, hit) for hit in found]
    enough = is_enough(model, question_confidence(model, signals))
    for confidence, each in zip(hit_confidences(model, signals, found), supports, strict=True):
        above = each / max(supports) >= model.support_floor
        assert is_enough(model, confidence) is (enough and above)


@given(hits, st.floats(-1, 1))
def test_more_support_is_never_less_confidence(
    found: list[dict[str, float]], margin: float
) -> None:
    signals = asked_for(found, margin)
    pairs = zip(
        [support(MODEL, signals, hit) for hit in found],
        hit_confidences(MODEL, signals, found),
        strict=True,
    )
    ordered = [confidence for _, confidence in sorted(pairs)]
    assert all(a <= b + 1e-12 for a, b in pairwise(ordered))


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        # At every mean: the intercept alone.
        ({"best_cosine": 0.5, "best_coverage": 0.5, "author_margin": 0.0}, 0.3775406688),
        # One scale more adds one weight.
        ({"best_cosine": 0.6, "best_coverage": 0.5, "author_margin": 0.0}, 0.8175744762),
        # What could not be measured counts as its mean.
        ({"best_cosine": 0.6}, 0.8175744762),
        ({"best_coverage": 0.5}, 0.3775406688),
        # Without any hit there is nothing to be confident of.
        ({}, 0.0),
        ({"author_margin": 1.0, "unseen_rarity": 0.0}, 0.0),
        # Never over or under what exp() can say.
        ({"best_cosine": 1e9}, 1.0),
        ({"best_cosine": -1e9}, 8.75651076e-27),
    ],
)
def test_confidence_is_the_sigmoid_of_weighted_signals(
    signals: dict[str, float], expected: float
) -> None:
    assert question_confidence(MODEL, signals) == pytest.approx(expected)


def test_the_contribution_of_each_signal_is_told_in_logits() -> None:
    told = contributions(MODEL, {names.BEST_COSINE: 0.7, names.BEST_COVERAGE: 0.4, "other": 9.0})
    assert told == {names.BEST_COSINE: pytest.approx(4.0), names.BEST_COVERAGE: pytest.approx(-0.5)}


FAR = {names.COSINE: 0.1, names.COVERAGE: 0.1}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Verbatim, however far the cosine: enough. In part, or not: what the signals say.
        (1.0, MODEL.threshold),
        (0.5, pytest.approx(0.0, abs=0.01)),
        (0.0, pytest.approx(0.0, abs=0.01)),
    ],
)
def test_an_identifier_found_verbatim_is_not_abstained(found: float, expected: float) -> None:
    hit = {**FAR, names.IDENTIFIERS: found}
    signals = {
        names.BEST_COSINE: 0.1,
        names.BEST_COVERAGE: 0.1,
        names.IDENTIFIER_FOUND: found,
    }
    assert question_confidence(MODEL, signals) == expected
    assert hit_confidences(MODEL, signals, [hit]) == [expected]


def test_an_identifier_exempts_the_hit_that_holds_it_and_no_other() -> None:
    signals = {
        names.BEST_COSINE: 0.3,
        names.BEST_COVERAGE: 0.1,
        names.IDENTIFIER_FOUND: 1.0,
    }
    near = {names.COSINE: 0.3, names.COVERAGE: 0.1, names.IDENTIFIERS: 0.0}
    exact = {**FAR, names.IDENTIFIERS: 1.0}
    of_near, of_exact = hit_confidences(MODEL, signals, [near, exact])
    assert of_exact == MODEL.threshold
    assert of_near < MODEL.threshold


def test_what_somebody_else_wrote_supports_a_question_about_a_person_less() -> None:
    signals = {
        names.BEST_COSINE: 0.6,
        names.BEST_COVERAGE: 0.5,
        names.AUTHOR_NAMED: 1.0,
        names.AUTHOR_MARGIN: 0.4,
    }
    by_named = {names.COSINE: 0.6, names.COVERAGE: 0.5, names.BY_NAMED_AUTHOR: 1.0}
    by_other = {names.COSINE: 0.6, names.COVERAGE: 0.5, names.BY_NAMED_AUTHOR: 0.0}
    assert support(MODEL, signals, by_named) > support(MODEL, signals, by_other)


def test_a_stored_model_is_the_same_after_it_was_read() -> None:
    stored = json.loads(json.dumps(to_json(MODEL)))
    assert from_json(stored) == MODEL
    assert digest(stored) == digest(dict(reversed(stored.items())))
    assert digest(stored) != digest({**stored, "threshold": 0.61})


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"schema": None},
        {"threshold": "high"},
        {"weights": None},
        {"means": {"a": "x"}},
    ],
)
def test_a_stored_model_that_can_not_be_read_says_so(change: dict[str, object]) -> None:
    with pytest.raises(ModelError):
        from_json({**to_json(MODEL), **change})


def test_a_stored_model_with_a_part_missing_says_so() -> None:
    stored = to_json(MODEL)
    del stored["scales"]
    with pytest.raises(ModelError, match="scales"):
        from_json(stored)
