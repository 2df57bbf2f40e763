"""The tokenizer: the genuine encoding, offline, on any text."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.tokens import RANKS_SHA256, O200kEncoder, RanksError, load_encoder

BASE64_OF_200_KB = base64.b64encode(random.Random(1).randbytes(150_000)).decode()


@pytest.mark.parametrize(
    ("text", "token_count"),
    [
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 8),
        ("hello world", 2),
        ("", 0),
    ],
)
def test_counts_are_those_of_the_genuine_encoding(
    encoder: O200kEncoder, text: str, token_count: int
) -> None:
    assert len(encoder.encode(text)) == token_count


def test_tokens_are_those_of_the_genuine_encoding(encoder: O200kEncoder) -> None:
    assert encoder.encode("hello world") == [24912, 2375]


@pytest.mark.parametrize(
    "text",
    [
        "the tokenizer prints <|endoftext|> and <|im_start|>",
        "<|endoftext|>",
        "<|endofprompt|><|endofprompt|>",
    ],
)
def test_text_that_looks_like_a_control_token_is_ordinary_text(
    encoder: O200kEncoder, text: str
) -> None:
    tokens = encoder.encode(text)
    assert encoder.decode(tokens) == text
    assert not {199_999, 200_018} & set(tokens)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "^" * 1_000_000,
        "_" * 50_000,
        BASE64_OF_200_KB,
        " " * 1_000_000,
        "\n" * 1_000_000,
        "\U0001f600" * 200_000,
        "e" + "\u0301" * 300_000,
        "漢" * 200_000,
    ],
    ids=["letters", "carets", "underscores", "base64", "spaces", "lines", "emoji", "marks", "han"],
)
def test_a_long_run_is_encoded_whole_in_bounded_memory(encoder: O200kEncoder, text: str) -> None:
    tracemalloc.start()
    tokens = encoder.encode(text)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert encoder.decode(tokens) == text
    assert peak_bytes < 100_000_000


@pytest.mark.parametrize("text", ["a" * 3_000, "_" * 3_000, BASE64_OF_200_KB[:3_000], "^" * 3_000])
def test_the_count_of_a_cut_run_is_an_estimate_just_above_the_true_one(
    encoder: O200kEncoder, text: str
) -> None:
    true_count = len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))
    assert true_count <= len(encoder.encode(text)) <= 1.25 * true_count


def test_ordinary_text_is_counted_exactly(encoder: O200kEncoder) -> None:
    text = "Deploy moved to Thursday: `make deploy` — see https://ex.test/runbook?a=1&b=2 \n" * 50
    expected = tiktoken.get_encoding("o200k_base").encode_ordinary(text)
    assert encoder.encode(text) == expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=2_000))
def test_decoding_gives_the_text_back(encoder: O200kEncoder, text: str) -> None:
    assert encoder.decode(encoder.encode(text)) == text


def test_the_ranks_are_unpacked_once_and_whole(tmp_path: Path) -> None:
    folder = tmp_path / "tiktoken"
    load_encoder(folder)
    [ranks] = folder.iterdir()
    assert hashlib.sha256(ranks.read_bytes()).hexdigest() == RANKS_SHA256
    written = ranks.stat().st_mtime_ns
    load_encoder(folder)
    assert [file.stat().st_mtime_ns for file in folder.iterdir()] == [written]


def test_damaged_ranks_are_replaced(tmp_path: Path) -> None:
    load_encoder(tmp_path)
    [ranks] = tmp_path.iterdir()
    ranks.write_bytes(b"half a file")
    load_encoder(tmp_path)
    assert hashlib.sha256(ranks.read_bytes()).hexdigest() == RANKS_SHA256


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RanksError, match=r"file/tiktoken.*RECALL_HOME"):
        load_encoder(blocked / "tiktoken")


def test_the_environment_is_as_before_after_loading(tmp_path: Path) -> None:
    before = dict(os.environ)
    load_encoder(tmp_path)
    assert dict(os.environ) == before


def test_processes_that_start_at_once_all_get_the_encoder(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from services.ingest.tokens import load_encoder;"
        "print(load_encoder(pathlib.Path(sys.argv[1])).encode('hello world'))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in processes] == ["[24912, 2375]"] * 3
    assert len(list(tmp_path.iterdir())) == 1
