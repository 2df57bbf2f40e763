"""Slack text to readable text: every shape, nothing twice, no id and no token shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.directory import Channel, ChannelKind, Directory, Person
from services.ingest.markup import decode_entities, plain, storable, without_tokens
from services.ingest.message_text import readable_text

NAMES = Directory(
    people={"U1": Person("U1", "Ana"), "B1": Person("B1", "Deploy bot", is_bot=True)},
    channels={
        "C1": Channel("C1", "ops", ChannelKind.PUBLIC),
        "C2": Channel("C2", "layoffs", ChannelKind.PRIVATE),
    },
)


def text_of(**record: Any) -> str:
    return readable_text(record, NAMES)


def rich(*elements: dict[str, Any], kind: str = "rich_text_section") -> dict[str, Any]:
    return {"type": "rich_text", "elements": [{"type": kind, "elements": list(elements)}]}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def section(*texts: str) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": [words(text) for text in texts]}


@pytest.mark.parametrize(
    ("mrkdwn", "expected"),
    [
        ("<@U1|old> said", "@Ana said"),
        ("<@U9|old>", "@old"),
        ("<@U9>", "@unknown person"),
        ("<@U9|@old>", "@old"),
        ("<#C1|former>", "#ops"),
        ("<#C9|former>", "#former"),
        ("<#C9>", "#unknown channel"),
        ("<#C9|>", "#unknown channel"),
        ("<!here> <!channel> <!everyone>", "@here @channel @everyone"),
        ("<!subteam^S1|@oncall>", "@oncall"),
        ("<!subteam^S1>", "@unknown group"),
        ("<!date^1392734382^{date} at {time}|Feb 18th>", "Feb 18th"),
        ("<!date^1392734382^{date}>", "2014-02-18 14:39 UTC"),
        ("<!date^soon^{date}>", ""),
        ("<https://ex.test/runbook|here>", "here (https://ex.test/runbook)"),
        ("<https://ex.test/runbook>", "https://ex.test/runbook"),
        ("<http://ex.test|ex.test>", "http://ex.test"),
        ("<http://ex.test/|http://ex.test>", "http://ex.test/"),
        ("<https://ex.test/?a=1&amp;b=2>", "https://ex.test/?a=1&b=2"),
        ("<mailto:p@ex.test|mail>", "mail (p@ex.test)"),
        ("<mailto:p@ex.test|p@ex.test>", "p@ex.test"),
        ("<tel:+15551234|call>", "call (+15551234)"),
        ("<ftp://files.ex.test/>", "ftp://files.ex.test/"),
        ("a <b> c", "a <b> c"),
        ("x < y and y > z", "x < y and y > z"),
        ("<|x>", "<|x>"),
        ("<>", "<>"),
        ("<@U1", "<@U1"),
        ("&lt;b&gt; &amp;lt; &amp;amp; &quot;", "<b> &lt; &amp; &quot;"),
        ("`psql -U <user>`", "`psql -U <user>`"),
        ("*bold* _it_ ~no~ :tada:", "*bold* _it_ ~no~ :tada:"),
        ("", ""),
    ],
)
def test_inline_markup_reads_as_slack_shows_it(mrkdwn: str, expected: str) -> None:
    assert plain(mrkdwn, NAMES) == expected


def test_a_line_with_every_kind_of_markup_is_decoded_once_and_shows_no_id() -> None:
    assert text_of(
        text="<@U1|old> &lt;b&gt; &amp;lt; <#C1|ops> <!here> <!subteam^S1|@oncall> "
        "<https://ex.test/a?x=1&amp;y=2|doc> <mailto:p@ex.test|mail>"
    ) == ("@Ana <b> &lt; #ops @here @oncall doc (https://ex.test/a?x=1&y=2) mail (p@ex.test)")


def test_escaped_markup_is_text() -> None:
    assert plain("type &lt;@U1&gt; to mention", NAMES) == "type <@U1> to mention"


def test_a_mention_does_not_tell_the_name_of_a_private_channel() -> None:
    assert plain("see <#C2|layoffs>", NAMES) == "see #private channel"


@given(st.text(st.characters(exclude_characters="<>&")))
def test_text_without_markup_stays_as_it_is(text: str) -> None:
    assert plain(text, NAMES) == text


@given(st.text(st.characters(exclude_characters="\0")))
def test_decoding_undoes_exactly_one_round_of_encoding(text: str) -> None:
    encoded = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert decode_entities(encoded) == text
    assert plain(encoded, NAMES) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\0b", "ab"),
        ("\0", ""),
        ("a\ud800b", "a?b"),
        ("\udc00\ud800", "??"),
        ("\U0001f600 e\u0301 \x01 \ufffd", "\U0001f600 e\u0301 \x01 \ufffd"),
    ],
)
def test_only_what_cannot_be_stored_is_removed(text: str, expected: str) -> None:
    assert storable(text) == expected
    storable(text).encode("utf-8")


def test_nul_leaves_text_blocks_and_attachments() -> None:
    stored = text_of(
        text="a\0b",
        blocks=[rich(words("c\0d"))],
        attachments=[{"title": "e\0f", "fields": [{"title": "g\0", "value": "\0h\ud83d"}]}],
    )
    assert "\0" not in stored
    assert all(part in stored for part in ("ab", "cd", "ef", "g: h?"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://files.test/f.jpg?t=xoxe-123-abc", "https://files.test/f.jpg"),
        ("https://files.test/f.jpg?t=xoxe-1&pub=2", "https://files.test/f.jpg?pub=2"),
        ("https://files.test/f.jpg?pub=2&t=xoxe-1", "https://files.test/f.jpg?pub=2"),
        ("https://files.test/f.jpg?a=1&t=xoxe-1&b=2 next", "https://files.test/f.jpg?a=1&b=2 next"),
        ("(https://files.test/f.jpg?t=xoxe-REDACTED)", "(https://files.test/f.jpg)"),
        ("https://files.test/f?t=xoxe.xoxb-1-secret", "https://files.test/f"),
        ("https://files.test/f?token=xoxp-12-34", "https://files.test/f"),
        ("https://files.test/xoxs-12-34/f", "https://files.test//f"),
        ("https://ex.test/go?u=https%3A%2F%2Ff.test%3Ft%3Dxoxe-1-2", None),
        ("use xoxb-12345-abcdef please", "use [token removed] please"),
        ("bot tokens start with xoxb-", "bot tokens start with xoxb-"),
        ("xoxo-hugs-and-kisses", "xoxo-hugs-and-kisses"),
        ("https://xoxo-fest.test/2026", "https://xoxo-fest.test/2026"),
        ("https://ex.test/?t=90s", "https://ex.test/?t=90s"),
    ],
)
def test_slack_tokens_are_removed_and_the_rest_stays(text: str, expected: str | None) -> None:
    cleaned = without_tokens(text)
    if expected is None:
        assert "xox" not in cleaned
    else:
        assert cleaned == expected


@pytest.mark.parametrize(
    "record",
    [
        {"text": "<https://files.test/f.jpg?x=1&amp;t=xoxe-1-secret|photo>"},
        {"blocks": [rich({"type": "link", "url": "https://f.test/f?t=xoxe-1-secret"})]},
        {"attachments": [{"title": "f", "title_link": "https://f.test/f?t=xoxe-1-secret"}]},
        {"attachments": [{"fallback": "f https://f.test/f?t=xoxe-1-secret"}]},
        {"files": [{"title": "f", "url_private": "https://f.test/f?t=xoxe-1-secret"}]},
        {"files": [{"title": "https://f.test/f?t=xoxe-1-secret"}]},
    ],
)
def test_a_file_link_token_is_nowhere_in_the_text(record: dict[str, Any]) -> None:
    stored = readable_text(record, NAMES)
    assert stored
    assert "xoxe" not in stored
    assert "secret" not in stored


# Blocks


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (rich(words("plain "), words("words")), "plain words"),
        (rich(words("raw &amp; <@U1> stays")), "raw &amp; <@U1> stays"),
        (rich({"type": "user", "user_id": "U1"}, words(" hi")), "@Ana hi"),
        (rich({"type": "user", "user_id": "U9"}), "@unknown person"),
        (rich({"type": "channel", "channel_id": "C1"}), "#ops"),
        (rich({"type": "usergroup", "usergroup_id": "S1"}), "@unknown group"),
        (rich({"type": "broadcast", "range": "here"}), "@here"),
        (rich({"type": "emoji", "name": "tada", "unicode": "1f389"}), ":tada:"),
        (rich({"type": "date", "timestamp": 1392734382, "fallback": "Feb 18"}), "Feb 18"),
        (rich({"type": "date", "timestamp": 1392734382}), "2014-02-18 14:39 UTC"),
        (rich({"type": "color", "value": "#FF0000"}), "#FF0000"),
        (
            rich({"type": "link", "url": "https://ex.test/a?x=1&amp;y=2"}),
            "https://ex.test/a?x=1&y=2",
        ),
        (rich({"type": "sparkle", "text": "new kind"}), "new kind"),
        (rich({"type": "sparkle", "id": "X1"}), ""),
        (rich(words("quoted\ntwice"), kind="rich_text_quote"), "> quoted\n> twice"),
        (rich(words("a = 1"), kind="rich_text_preformatted"), "```\na = 1\n```"),
        (rich(words("deep"), kind="rich_text_hologram"), "deep"),
        ({"type": "header", "text": {"type": "plain_text", "text": "Q&amp;A"}}, "Q&A"),
        ({"type": "section", "text": {"type": "mrkdwn", "text": "<@U1> *did*"}}, "@Ana *did*"),
        (
            {"type": "section", "fields": [{"type": "mrkdwn", "text": "*host*"}, words("db-2")]},
            "*host*\ndb-2",
        ),
        (
            {
                "type": "context",
                "elements": [
                    {"type": "image", "image_url": "https://ex.test/i.png", "alt_text": "a cat"},
                    {"type": "mrkdwn", "text": "by <@U1>"},
                ],
            },
            "a cat\nby @Ana",
        ),
        ({"type": "image", "title": {"text": "Chart"}, "alt_text": "load"}, "Chart\nload"),
        (
            {"type": "video", "title": {"text": "Talk"}, "description": {"text": "long"}},
            "Talk\nlong",
        ),
        ({"type": "markdown", "text": "**bold** words"}, "**bold** words"),
        (
            {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}, rich(words("b"))]]},
            "a | b",
        ),
        ({"type": "actions", "elements": [{"type": "button", "text": {"text": "Approve"}}]}, ""),
        ({"type": "divider"}, ""),
        ({"type": "hologram", "title": "New", "blocks": [rich(words("inside"))]}, "New\ninside"),
        ({"type": "hologram"}, ""),
        ({"elements": "not a list"}, "not a list"),
    ],
)
def test_words_of_each_kind_of_block(block: dict[str, Any], expected: str) -> None:
    assert text_of(text="", blocks=[block]) == expected


def test_nested_lists_keep_their_levels_and_numbers() -> None:
    def items(style: str, indent: int, *texts: str, **more: Any) -> dict[str, Any]:
        elements = [section(text) for text in texts]
        return {
            "type": "rich_text_list",
            "style": style,
            "indent": indent,
            "elements": elements,
        } | more

    inner = {"type": "rich_text_list", "style": "bullet", "elements": [section("inside")]}
    outer = items("bullet", 0, "outer")
    outer["elements"].append(inner)
    block = {
        "type": "rich_text",
        "elements": [
            items("ordered", 0, "first", "second"),
            items("bullet", 1, "under second"),
            items("ordered", 0, "third", offset=2),
            outer,
        ],
    }
    assert text_of(blocks=[block]) == (
        "1. first\n2. second\n  • under second\n3. third\n• outer\n  • inside"
    )


def test_a_block_deeper_than_any_real_one_ends_quietly() -> None:
    block: dict[str, Any] = {"type": "hologram", "text": "far down"}
    for _ in range(500):
        block = {"type": "hologram", "title": "near", "elements": [block]}
    assert "near" in text_of(blocks=[block])


# Which of text and blocks


def test_text_and_equal_blocks_are_said_once() -> None:
    link = {"type": "link", "url": "https://ex.test/", "text": "doc"}
    assert (
        text_of(
            text="Hi <@U1>, see <https://ex.test/|doc> :tada:",
            blocks=[
                rich(
                    words("Hi "),
                    {"type": "user", "user_id": "U1"},
                    words(", see "),
                    link,
                    words(" "),
                    {"type": "emoji", "name": "tada"},
                )
            ],
        )
        == "Hi @Ana, see doc (https://ex.test/) :tada:"
    )


def test_a_link_that_only_the_block_holds_is_kept() -> None:
    assert (
        text_of(
            text="see here",
            blocks=[
                rich(
                    words("see "),
                    {"type": "link", "url": "https://ex.test/runbook", "text": "here"},
                )
            ],
        )
        == "see here (https://ex.test/runbook)"
    )


def test_a_notification_line_gives_way_to_blocks_that_hold_its_words() -> None:
    assert (
        text_of(text="Deploy failed", blocks=[section_block("*Deploy failed* on db-2, see log 77")])
        == "*Deploy failed* on db-2, see log 77"
    )


def test_text_that_says_other_words_than_the_blocks_is_kept_with_them() -> None:
    stored = text_of(text="Incident 77 opened", blocks=[section_block("Severity one")])
    assert stored == "Incident 77 opened\nSeverity one"


def test_a_label_that_only_the_text_knows_names_the_person() -> None:
    stored = text_of(
        text="ask <@U9|Zoe>", blocks=[rich(words("ask "), {"type": "user", "user_id": "U9"})]
    )
    assert stored == "ask @Zoe"


def section_block(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


# Attachments


@pytest.mark.parametrize(
    ("attachment", "expected"),
    [
        (
            {"fallback": "Disk 91% on db-2", "fields": [{"title": "host", "value": "db-2"}]},
            "host: db-2",
        ),
        ({"fallback": "Disk 91% on db-2"}, "Disk 91% on db-2"),
        ({"fallback": "[no preview available]"}, ""),
        (
            {"fallback": "x", "blocks": [section_block("Disk 91% on <@U1>'s db-2")]},
            "Disk 91% on @Ana's db-2",
        ),
        (
            {
                "pretext": "New",
                "title": "Bug 7",
                "title_link": "https://ex.test/7",
                "text": "It &lt;fails&gt;",
            },
            "New\nBug 7 (https://ex.test/7)\nIt <fails>",
        ),
        ({"title": "Bug 7", "text": "Bug 7"}, "Bug 7"),
        ({"author_name": "Ana", "text": "said so"}, "Ana: said so"),
        (
            {"fields": [{"title": "only title"}, {"value": "only value"}, {}, "odd"]},
            "only title\nonly value",
        ),
        ({"fields": [{"title": "n", "value": 12, "short": True}]}, "n: 12"),
        ({"text": "Yes", "blocks": [section_block("Yes")]}, "Yes"),
        ({"attachments": [{"text": "inner"}]}, "inner"),
        (
            {"message_blocks": [{"message": {"blocks": [section_block("shared words")]}}]},
            "shared words",
        ),
        ({"files": [{"title": "report.pdf"}]}, "File: report.pdf"),
        ({"image_url": "https://ex.test/i.png", "fallback": "800x800px image"}, "800x800px image"),
        ({}, ""),
    ],
)
def test_words_of_a_bot_that_posts_only_attachments(
    attachment: dict[str, Any], expected: str
) -> None:
    assert text_of(subtype="bot_message", text="", attachments=[attachment]) == expected


def test_a_link_preview_follows_the_text_and_repeats_neither_its_link_nor_its_words() -> None:
    stored = text_of(
        text="see <https://ex.test/viz>",
        attachments=[
            {
                "from_url": "https://ex.test/viz",
                "title": "Viz",
                "title_link": "https://ex.test/viz",
                "text": "A gallery of charts",
                "fallback": "Viz: gallery",
            }
        ],
    )
    assert stored == "see https://ex.test/viz\n> Linked page: A gallery of charts"


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ({"from_url": "https://ex.test/a"}, "Linked page"),
        ({"original_url": "https://ex.test/a"}, "Linked page"),
        (
            {"from_url": "https://t.slack.test/archives/C1/p1", "is_msg_unfurl": True},
            "Linked message",
        ),
    ],
)
def test_every_line_of_what_a_link_shows_is_marked_as_not_the_author_s(
    kind: dict[str, Any], label: str
) -> None:
    attachment = {**kind, "title": "How to sail", "text": "First row.\nThen sail."}
    stored = text_of(
        text="worth reading https://ex.test/a",
        attachments=[attachment, {"text": "mine"}],
    )
    assert stored == (
        f"worth reading https://ex.test/a\n> {label}: How to sail\n> First row.\n> Then sail.\nmine"
    )


def test_the_size_of_a_previewed_image_is_not_text() -> None:
    stored = text_of(
        text="look <https://ex.test/i.png>",
        attachments=[{"from_url": "https://ex.test/i.png", "fallback": "800x800px image"}],
    )
    assert stored == "look https://ex.test/i.png"


def test_the_same_attachment_twice_is_said_once() -> None:
    alert = {"text": "Disk 91% on db-2"}
    assert text_of(text="Disk 91% on db-2!", attachments=[alert, alert]) == "Disk 91% on db-2!"


# Files


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": "hi", "files": [{"id": "F1", "mode": "tombstone"}]}, "hi"),
        ({"text": "hi", "files": [{"id": "F2", "mode": "hidden_by_limit"}]}, "hi"),
        ({"text": "hi", "files": [{"id": "F3", "file_access": "check_file_info"}]}, "hi"),
        (
            {"text": "", "files": [{"id": "F4", "title": "Q3 plan", "name": "q3.pdf"}]},
            "File: Q3 plan",
        ),
        ({"text": "", "file": {"id": "F5", "name": "q3.pdf", "title": ""}}, "File: q3.pdf"),
        (
            {
                "text": "<@U1> uploaded a file: <https://s.test/q3.pdf|q3.pdf>",
                "file": {"title": "q3.pdf"},
            },
            "@Ana uploaded a file: q3.pdf (https://s.test/q3.pdf)",
        ),
        (
            {"text": "", "files": [{"title": "a", "initial_comment": {"comment": "see <@U1>"}}]},
            "File: a\nsee @Ana",
        ),
        ({"text": "hi", "files": None, "file": "odd"}, "hi"),
    ],
)
def test_titles_of_files_are_text_and_stubs_are_not(record: dict[str, Any], expected: str) -> None:
    assert readable_text(record, NAMES) == expected


@pytest.mark.parametrize(
    "odd", [None, True, 3, "x", [], [None], [[]], {}, {"a": 1}, [{"text": {}}]]
)
def test_odd_values_where_lists_are_expected_cost_no_text(odd: Any) -> None:
    stored = text_of(text="words", blocks=odd, attachments=odd, files=odd)
    assert stored.startswith("words")
