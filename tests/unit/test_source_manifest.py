"""The manifest names exactly what goes in, and its digest names the manifest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from services.manifest import (
    Manifest,
    ManifestObject,
    canonical,
    digest,
    erased_fingerprint,
    parse,
)
from services.runtime.errors import CallError

SHA = "a" * 64
ONE = ManifestObject("file:///n/one.md", "one.md", SHA, "text/markdown", 3, SHA)
TWO = ManifestObject("s3://bucket/two.md", "two.md", "v7", "text/markdown", 3, "b" * 64)


def test_the_digest_does_not_depend_on_the_order_of_objects() -> None:
    assert canonical(Manifest("notes", (ONE, TWO))) == canonical(Manifest("notes", (TWO, ONE)))


@pytest.mark.parametrize(
    "changed",
    [
        replace(TWO, version_id="v8"),
        replace(TWO, size=4),
        replace(TWO, sha256="c" * 64),
        replace(TWO, path="three.md"),
    ],
)
def test_anything_else_changes_the_digest(changed: ManifestObject) -> None:
    before = digest(canonical(Manifest("notes", (ONE, TWO))))
    assert digest(canonical(Manifest("notes", (ONE, changed)))) != before


def test_a_manifest_is_read_back_as_it_was() -> None:
    assert parse(canonical(Manifest("notes", (ONE, TWO)))) == Manifest("notes", (ONE, TWO))


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (Manifest("No Name", ()), "lowercase letters"),
        (Manifest("n", (replace(ONE, uri="http://x/one.md"),)), "must be file:// or s3://"),
        (Manifest("n", (replace(ONE, uri="file:///one.md?x=1"),)), "without query or fragment"),
        (Manifest("n", (replace(ONE, sha256="short"),)), "no SHA-256"),
        (Manifest("n", (replace(ONE, size=-1),)), "-1 bytes"),
        (Manifest("n", (replace(ONE, path=""),)), "no usable path"),
        (Manifest("n", (replace(ONE, version_id="v1"),)), "must be its SHA-256"),
        (Manifest("n", (ONE, replace(ONE, path="other.md"))), "the uri 'file:///n/one.md' twice"),
        (Manifest("n", (ONE, replace(TWO, path="one.md"))), "the path 'one.md' twice"),
    ],
)
def test_a_manifest_that_can_not_be_built_is_refused_with_what_is_wrong(
    manifest: Manifest, said: str
) -> None:
    with pytest.raises(CallError) as raised:
        parse(canonical(manifest))
    assert said in raised.value.message


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"[]",
        b"{}",
        json.dumps({"schema_version": 2, "collection": "n", "objects": []}).encode(),
        json.dumps({"schema_version": 1, "collection": "n", "objects": [{"uri": "x"}]}).encode(),
        json.dumps({"schema_version": 1, "collection": 3, "objects": []}).encode(),
        canonical(Manifest("n", (ONE,))).replace(b'"size":3', b'"size":"3"'),
        canonical(Manifest("n", (ONE,))).replace(b"text/markdown", b"\\ud800"),
    ],
)
def test_what_is_no_manifest_is_refused(stored: bytes) -> None:
    with pytest.raises(CallError):
        parse(stored)


def test_every_erasure_gives_the_corpus_another_name() -> None:
    assert erased_fingerprint(SHA, []) == SHA
    names = {erased_fingerprint(SHA, each) for each in (["a"], ["b"], ["a", "b"])}
    assert len(names) == 3
    assert erased_fingerprint(SHA, ["b", "a"]) == erased_fingerprint(SHA, ["a", "b"])
