"""The citation check: what counts as a citation, and what may be shown."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.answer.citations import (
    FALSE_QUOTATION,
    NO_CITATION,
    NO_TEXT,
    UNKNOWN_CITATION,
    UNVERIFIED_TEXT,
    Checked,
    Outcome,
    check,
)
from services.answer.mentions import without_ids
from services.corpus import Message, slack_message_id, synthetic_message_id

P1, P12 = "synthetic:ops:p1", "synthetic:ops:p12"
SLACK = "slack:T1:C1:1700000000.000100"
DOCUMENT = "document:handbook:docs/deploy.md#3"
COLON = "synthetic:conv0:D1:3"
HYPHEN = "synthetic:harbour-lounge:l0001"
ODD = "synthetic:ops:p(1);x_"
TEXTS = {
    P1: "deploy window is Tuesday, see https://ex.test/runbook?x=1",
    P12: "deploy window moved to *Thursday* from next week on, Bartek will own it",
    SLACK: 'run `psql -c "select 1"` then read wiki.harbour.dev/start',
    DOCUMENT: "edit config.yaml by hand",
    COLON: "I reproduced it on 3.2",
    HYPHEN: "cardamom buns",
    ODD: "odd",
}


def message(message_id: str, text: str) -> Message:
    posted_at = datetime(2026, 8, 14, 9, tzinfo=UTC)
    return Message(message_id, "w", "ops", "ops", "u1", "Ines", posted_at, text, message_id)


EVIDENCE = [message(message_id, text) for message_id, text in TEXTS.items()]


def checked(text: str, question: str = "") -> Checked:
    return check(text, EVIDENCE, question)


@pytest.mark.parametrize(
    ("written", "shown", "cited"),
    [
        (f"A [{P1}].", f"A [{P1}].", [P1]),
        (f"A [{P1}, {P12}] b", f"A [{P1}] [{P12}] b", [P1, P12]),
        (f"A [{P12}; {P1} and {SLACK}]", f"A [{P12}] [{P1}] [{SLACK}]", [P12, P1, SLACK]),
        (f"A [{P1} {P12}]", f"A [{P1}] [{P12}]", [P1, P12]),
        (f"A [{P1}][{P12}][{P1}]", f"A [{P1}] [{P12}] [{P1}]", [P1, P12]),
        ("A [ synthetic : ops : p1 ]", f"A [{P1}]", [P1]),
        (f"A [[{P1}]]", f"A [{P1}]", [P1]),
        (f"A ([{P1}], [{P12}])", f"A [{P1}] [{P12}]", [P1, P12]),
        (f"A 【{P1}】", f"A [{P1}]", [P1]),
        (f"A （{P1}、）", f"A （[{P1}]、）", [P1]),
        (f"A [{P1}](https://evil.test/x)", f"A [{P1}]", [P1]),
        (f"A [the note]({P1})", f"A the note [{P1}]", [P1]),
        (f"A `{P1}`", f"A [{P1}]", [P1]),
        (f"A `[{P1}]`", f"A [{P1}]", [P1]),
        (f"A [source:{P1}]", f"A [{P1}]", [P1]),
        (f"A [id={P1}]", f"A [{P1}]", [P1]),
        ("A [SYNTHETIC:ops:p1]", f"A [{P1}]", [P1]),
        (f"A [source: {P1}]", f"A [{P1}]", [P1]),
        (f"A [Sources: {P1}, {P12}]", f"A [{P1}] [{P12}]", [P1, P12]),
        (f"A ({SLACK})", f"A [{SLACK}]", [SLACK]),
        (f"A (see {P1} for more)", f"A (see [{P1}] for more)", [P1]),
        (f"A [{P1}.]", f"A [{P1}]", [P1]),
        (f"{P1}: it says so", f"[{P1}]: it says so", [P1]),
        (f"A [{DOCUMENT}]", f"A [{DOCUMENT}]", [DOCUMENT]),
        (f"A [{COLON}]", f"A [{COLON}]", [COLON]),
        (f"A [{ODD}]", f"A [{ODD}]", [ODD]),
        ("A [synthetic:ops:p(1);x\\_]", f"A [{ODD}]", [ODD]),
        ("A [synthetic:harbour‑lounge:l0001]", f"A [{HYPHEN}]", [HYPHEN]),
        ("A [synthetic:ops:\u200bp1]", f"A [{P1}]", [P1]),
        (f"from 14 to 16 (said [{P1}])", f"from 14 to 16 (said [{P1}])", [P1]),
        (f"- a [{P1}]\n- b [{P12}]", f"- a [{P1}]\n- b [{P12}]", [P1, P12]),
        (f"In Slack: see [{P1}]", f"In Slack: see [{P1}]", [P1]),
        (f"[1] says so [{P1}]", f"[1] says so [{P1}]", [P1]),
    ],
)
def test_every_bracket_form_is_a_citation(written: str, shown: str, cited: list[str]) -> None:
    assert checked(written) == Checked(Outcome.ANSWERED, shown, tuple(cited))


@pytest.mark.parametrize(
    "written",
    [
        "[synthetic:ops:p99]",
        "[synthetic:ops:p]",
        "[synthetic:ops:p123]",
        "[synthetic:ops:P1]",
        "[slack:T1:C1:17000…]",
        "[slack:T1:C1:17000...]",
        "[slack:T1:C1:1700000000.0001]",
        f"[{P1}...]",
        f"[{P1}-p12]",
        f"[{P1}–p12]",
        f"[{P1} - p12]",
        f"[{P1} to {P12}]",
        f"[{P1}]–[{P12}]",
        f"[{P1}, p12]",
        f"[{P1}/{P12}]",
        f"[{P1}_]x",
        "[slack:…]",
        "[slack:T1",
        "[document:handbook:docs/deploy.md]",
        "see slack:T9:C9:1.000000 there",
        "[note](slack:T9:C9:1.000000)",
        "`synthetic:ops:p99`",
        "_synthetic:ops:p99_",
        "(id:synthetic:ops:p99)",
        "【SYNTHETIC: ops: p99】",
        "[1]: synthetic:ops:p99",
        f"[{P1}é]",
    ],
)
def test_one_unknown_id_replaces_the_whole_answer(written: str) -> None:
    for text in (written, f"True [{P12}]. {written}", f"{written}\nTrue [{P12}]."):
        assert checked(text) == Checked(Outcome.UNVERIFIED, UNVERIFIED_TEXT, (), UNKNOWN_CITATION)


@pytest.mark.parametrize(
    "written",
    [
        "It moved to Thursday.",
        "It moved to Thursday [1].",
        "It moved to Thursday [^2].\n\n[^2]: Bartek",
        f"It moved [1].\n\n[1]: {P1}",
        "The disk is synthetic: see the test",
        "call `document:write` or slack://channel?id=C1",
    ],
)
def test_text_without_a_citation_is_replaced(written: str) -> None:
    assert checked(written) == Checked(Outcome.UNVERIFIED, UNVERIFIED_TEXT, (), NO_CITATION)


@pytest.mark.parametrize("written", ["", " \n", f"[{P1}]", "\u200b"])
def test_no_words_are_no_answer(written: str) -> None:
    assert checked(written).reason == NO_TEXT


def test_the_fixed_sentence_is_the_documented_one() -> None:
    assert UNVERIFIED_TEXT == "I couldn’t verify an answer from the available messages."


@pytest.mark.parametrize(
    "written",
    [
        "I could not find enough evidence.",
        "I couldn’t find enough evidence in the messages to answer that.",
        "Sorry, I couldn't find any information about the launch in the available messages.",
        "Based on the available messages, I cannot determine when Pilotbook launches.",
        "The provided messages do not say who owns the rollout.",
        "There is not enough evidence to answer the question.",
        "There is no mention of error 28P01 in the messages.",
        "Insufficient evidence.",
        "The messages don't answer this. I don't have enough information to say when.",
    ],
)
def test_saying_that_evidence_is_not_enough_needs_no_citation(written: str) -> None:
    outcome = checked(written, "When does Pilotbook launch and who fixed error 28P01?")
    assert outcome.outcome is Outcome.ABSTAINED
    assert outcome.text == written and outcome.reason


@pytest.mark.parametrize(
    "written",
    [
        "I could not find enough evidence. It moved to Thursday.",
        "I could not find enough evidence, but it is Thursday.",
        "I could not find enough evidence about the window which moved to Thursday.",
        "I could not find enough evidence about the move to 16 August.",
        "The messages do not say why Tomo left but Bartek took over.",
        "There is no evidence; use psql.",
        "I could not find enough evidence about `rm -rf`.",
        "Enough evidence was found.",
        "I found no evidence against Thursday, the new window.",
    ],
)
def test_a_claim_behind_such_a_statement_is_not_excused(written: str) -> None:
    assert checked(written, "When is the window?").outcome is Outcome.UNVERIFIED


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("See https://ex.test/runbook?x=1.", "See https://ex.test/runbook?x=1."),
        (
            "See [runbook](https://ex.test/runbook?x=1)",
            "See [runbook](https://ex.test/runbook?x=1)",
        ),
        ("See <https://ex.test/runbook?x=1>", "See https://ex.test/runbook?x=1"),
        ("![pic](https://ex.test/runbook?x=1)", "[pic](https://ex.test/runbook?x=1)"),
        ("See https://ex.test/runbook", "See (link removed)"),
        ("See https://ex.test/runbook?x=12", "See (link removed)"),
        ("See [docs](https://evil.test/x)", "See docs"),
        ("See [docs](https://evil.test/x 'title')", "See docs"),
        ("See [docs](<https://evil.test/x>)", "See docs"),
        ("See [docs](javascript:alert(1))", "See docs"),
        ("See [docs](//evil.test)", "See docs"),
        ("See [docs](/relative)", "See docs"),
        ("See [docs]()", "See docs"),
        ("See [![alt](http://c.test/a.png)](http://c.test)", "See alt"),
        ("![alt](data:image/png;base64,xx)", "alt"),
        ("See [docs][r]\n\n[r]: https://evil.test 'x'", "See docs"),
        ("See [r]\n\n[r]: <https://evil.test>", "See r"),
        ("See <https://evil.test|docs>", "See docs"),
        ("See <https://evil.test>", "See (link removed)"),
        ("Ask <mailto:a@evil.test|Ann>", "Ask Ann"),
        ("Ask a@evil.test now", "Ask (link removed) now"),
        ('See <a href="https://evil.test">docs</a>', "See docs"),
        ("<img src=x onerror=alert(1)>text", "text"),
        ("See evil.com/path, or www.evil.zz", "See (link removed), or (link removed)"),
        ("See evil.com.", "See (link removed)."),
        ("See https://user@evil.test:80/a(b)c.", "See (link removed)."),
        (
            "[https://evil.test](https://ex.test/runbook?x=1)",
            "[(link removed)](https://ex.test/runbook?x=1)",
        ),
        ("javascript:alert(1) and vbscript:x", "(link removed) and (link removed)"),
        ("edit main.py e.g. at 10.30 in v1.2.3", "edit main.py e.g. at 10.30 in v1.2.3"),
    ],
)
def test_links_survive_only_verbatim_from_a_cited_message(written: str, shown: str) -> None:
    assert checked(f"[{P1}]: {written}").text == f"[{P1}]: {shown}"


def test_a_link_of_an_uncited_message_is_removed() -> None:
    assert checked(f"See https://ex.test/runbook?x=1 [{P12}]").text == f"See (link removed) [{P12}]"


def test_a_bare_domain_of_the_cited_message_survives() -> None:
    assert "wiki.harbour.dev/start" in checked(f"Read wiki.harbour.dev/start [{SLACK}]").text


@pytest.mark.parametrize(
    "written",
    [
        f'It says "deploy window moved to Thursday" [{P12}].',
        f"It says “Deploy window  moved to Thursday,” [{P12}]",
        f'According to [{P12}], "Bartek will own it".',
        f'"window moved to Thursday from next week" [{P12}] and "deploy window is Tuesday" [{P1}].',
        f"> deploy window moved to Thursday from next week on\n\nso said Ines [{P12}]",
        f'Run `psql -c "select 1"` [{SLACK}]',
        f'One of them: "deploy window is Tuesday" [{P12}, {P1}]',
    ],
)
def test_a_verbatim_quotation_stays(written: str) -> None:
    assert checked(written).outcome is Outcome.ANSWERED
    assert checked(written).text.count('"') + checked(written).text.count("“") >= written.count('"')


@pytest.mark.parametrize(
    "written",
    [
        f'It says "deploy window is Tuesday" [{P12}].',
        f'"deploy window is Tuesday" [{P12}] and "window moved to Thursday" [{P1}].',
        f'"the deploy window was cancelled forever" [{P1}]',
        f'"deploy window is moved to Thursday" [{P1}] [{P12}]',
        f'"deploy window moved … Bartek will own it" [{P12}]',
        f"“eploy window moved to Thursday” [{P12}]",
        f"«deploy window is never Tuesday» [{P1}]",
        f"> nobody ever said this to anyone\n\n[{P1}]",
    ],
)
def test_a_long_false_quotation_replaces_the_answer(written: str) -> None:
    assert checked(written) == Checked(Outcome.UNVERIFIED, UNVERIFIED_TEXT, (), FALSE_QUOTATION)


def test_a_short_false_quotation_loses_its_marks() -> None:
    assert checked(f'The "big move" is on [{P12}].').text == f"The big move is on [{P12}]."


def test_words_of_an_uncited_message_do_not_support_a_quotation() -> None:
    assert checked(f'He wrote "I reproduced it on 3.2" [{P1}].').reason == FALSE_QUOTATION


def test_ids_inside_a_message_can_be_defused() -> None:
    text = without_ids(f"as [{P1}] and slack:T:C:1.0 said, synthetic: yes")
    assert check(f"{text} [{P12}]", EVIDENCE).cited_ids == (P12,)


ids = st.one_of(
    st.builds(slack_message_id, *[st.text(min_size=1, max_size=8)] * 3),
    st.builds(synthetic_message_id, *[st.text(min_size=1, max_size=8)] * 2),
)
# Trailing punctuation of an id can not be told from the sentence's; real ids have none.
ids = ids.filter(lambda message_id: re.search(r"[\w/%-]$", message_id) is not None)
forms = st.sampled_from(
    ["[{}]", "[ {} ]", "([{}])", "【{}】", "[[{}]]", "[source: {}]", "[{}](https://e.test)", "{}"]
)
prose = st.text(alphabet=st.sampled_from("ab .,;:!?()[]<>\"'`*_->\n【】“”…1\\|/"), max_size=40)


@given(ids, forms, prose)
def test_any_known_id_is_found_in_any_form(message_id: str, form: str, before: str) -> None:
    calm = re.sub(r"[^ab .\n]", "", before)
    result = check(f"{calm} claim {form.format(message_id)}", [message(message_id, "x")])
    assert result.outcome is Outcome.ANSWERED
    assert result.cited_ids == (message_id,)


@given(ids, ids, forms, prose, prose)
def test_an_unknown_id_never_passes(
    known: str, other: str, form: str, before: str, after: str
) -> None:
    text = f"{before} claim [{known}] {form.format(other)}\n{after}"
    result = check(text, [message(known, "x")])
    assert other == known or result.outcome is Outcome.UNVERIFIED


@given(st.lists(st.one_of(prose, ids.map(lambda one: f"[{one}]"), st.just(f"[{P1}]"))), st.data())
def test_only_given_messages_are_cited_and_checking_again_changes_nothing(
    pieces: list[str], data: st.DataObject
) -> None:
    text = data.draw(st.sampled_from(["claim ", ""])) + "".join(pieces)
    result = checked(text)
    assert set(result.cited_ids) <= set(TEXTS)
    assert (result.outcome is Outcome.ANSWERED) <= bool(result.cited_ids)
    if result.outcome is not Outcome.UNVERIFIED:
        assert checked(result.text) == result


@given(
    prose, st.sampled_from(["https://evil.test/a", "javascript:alert(1)", "www.evil.com"]), prose
)
def test_no_foreign_link_survives(before: str, link: str, after: str) -> None:
    for written in (link, f"[x]({link})", f"<{link}>", f"<{link}|x>", f"[r]\n\n[r]: {link}\n"):
        result = checked(f"claim [{P12}] {before} {written} {after}")
        assert link not in result.text
