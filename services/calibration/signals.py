"""Names and meaning of the signals that a confidence is made of."""

from __future__ import annotations

from collections.abc import Mapping

# Highest cosine of any hit's own chunk, and how far it stands above the second.
BEST_COSINE = "best_cosine"
COSINE_MARGIN = "cosine_margin"
# Rarity-weighted share (0 to 1) of the question's words in the best single hit, and in the best
# twelve together.
BEST_COVERAGE = "best_coverage"
JOINT_COVERAGE = "joint_coverage"
# Rarity-weighted share (0 to 1) of the question's words that stand in nothing the asker may read.
UNSEEN_RARITY = "unseen_rarity"
# Share (0 to 1) of the first ten messages of each arm that both have.
ARM_AGREEMENT = "arm_agreement"
# Whether (0 or 1) the question holds an exact identifier, and the share of them that one hit of the
# lexical arm holds verbatim.
IDENTIFIER_ASKED = "identifier_asked"
IDENTIFIER_FOUND = "identifier_found"
# Whether (0 or 1) the question names exactly one person who wrote something readable.
AUTHOR_NAMED = "author_named"
# Best coverage of the question's other words in one message by that person; that less the best in
# a message by anybody else; rank-weighted share of the first five hits that are by that person.
AUTHOR_COVERAGE = "author_coverage"
AUTHOR_MARGIN = "author_margin"
AUTHOR_SHARE = "author_share"

QUESTION_SIGNALS = (
    BEST_COSINE,
    COSINE_MARGIN,
    BEST_COVERAGE,
    JOINT_COVERAGE,
    UNSEEN_RARITY,
    ARM_AGREEMENT,
    IDENTIFIER_ASKED,
    IDENTIFIER_FOUND,
    AUTHOR_NAMED,
    AUTHOR_COVERAGE,
    AUTHOR_MARGIN,
    AUTHOR_SHARE,
)

# Of one hit.
COSINE = "cosine"
COVERAGE = "coverage"
# Share (0 to 1) of the question's identifiers that the hit holds verbatim.
IDENTIFIERS = "identifiers"
# Whether (0 or 1) the person whom the question names wrote it.
BY_NAMED_AUTHOR = "by_named_author"

HIT_SIGNALS = (COSINE, COVERAGE, IDENTIFIERS, BY_NAMED_AUTHOR)

Signals = Mapping[str, float]
