-- name: try_lock
-- Held by the connection until it ends: a killed build leaves no lock behind.
SELECT pg_try_advisory_lock(hashtextextended(%(workspace_id)s || chr(31) || %(collection)s, 7))

-- name: unlock
SELECT pg_advisory_unlock(hashtextextended(%(workspace_id)s || chr(31) || %(collection)s, 7))

-- name: save_collection
INSERT INTO channels (workspace_id, channel_id, name, kind)
VALUES (%(workspace_id)s, %(collection)s, %(collection)s, 'public')
ON CONFLICT (workspace_id, channel_id) DO NOTHING

-- name: abandoned_builds
-- Nobody builds them: the lock of their collection is ours.
SELECT generation_id
FROM generations
WHERE workspace_id = %(workspace_id)s
    AND collection = %(collection)s
    AND kind = 'sealed'
    AND state = 'building'
    AND validation = '{}'::jsonb
    AND generation_id <> %(generation_id)s

-- name: first_indexed
SELECT source_uri, min(first_indexed_at)
FROM sources
WHERE workspace_id = %(workspace_id)s AND channel_id = %(collection)s
GROUP BY source_uri

-- name: erased_uris
SELECT source_uri
FROM source_tombstones
WHERE workspace_id = %(workspace_id)s AND channel_id = %(collection)s

-- name: same_sources
-- What the parent holds unchanged, under the same pipeline.
SELECT s.source_uri
FROM sources AS s
INNER JOIN unnest(%(uris)s::text[], %(sha256s)s::text[], %(paths)s::text[]) AS wanted (uri, sha256, path)
    ON wanted.uri = s.source_uri AND wanted.sha256 = s.sha256 AND wanted.path = s.path
WHERE s.workspace_id = %(workspace_id)s AND s.generation_id = %(parent)s

-- name: carry_sources
INSERT INTO sources (
    workspace_id, generation_id, source_uri, channel_id, path, version_id, media_type, size, sha256,
    title, document_type, valid_from, valid_until, invalid_metadata, facts, depends_on, supersedes,
    relations, problems, first_indexed_at, indexed_at, carried_from
)
SELECT
    workspace_id, %(generation_id)s, source_uri, channel_id, path, version_id, media_type, size,
    sha256, title, document_type, valid_from, valid_until, invalid_metadata, facts, depends_on,
    supersedes, relations, problems, first_indexed_at, indexed_at, %(parent)s
FROM sources
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(parent)s
    AND source_uri = ANY (%(uris)s::text[])

-- name: carry_pieces
INSERT INTO source_pieces (
    workspace_id, generation_id, message_id, source_uri, ordinal, channel_id, text, content_sha256
)
SELECT
    workspace_id, %(generation_id)s, message_id, source_uri, ordinal, channel_id, text,
    content_sha256
FROM source_pieces
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(parent)s
    AND source_uri = ANY (%(uris)s::text[])

-- name: carry_chunks
INSERT INTO chunks (
    workspace_id, generation_id, chunk_id, channel_id, thread_root_id, kind, text, text_sha256,
    token_count
)
SELECT
    workspace_id, %(generation_id)s, chunk_id, channel_id, thread_root_id, kind, text, text_sha256,
    token_count
FROM chunks
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(parent)s
    AND thread_root_id = ANY (%(uris)s::text[])

-- name: carry_chunk_messages
INSERT INTO chunk_messages (workspace_id, generation_id, chunk_id, message_id, position)
SELECT m.workspace_id, %(generation_id)s, m.chunk_id, m.message_id, m.position
FROM chunk_messages AS m
INNER JOIN chunks AS c
    ON c.workspace_id = m.workspace_id
    AND c.generation_id = %(generation_id)s
    AND c.chunk_id = m.chunk_id
WHERE m.workspace_id = %(workspace_id)s AND m.generation_id = %(parent)s

-- name: carry_terms
INSERT INTO chunk_terms (
    workspace_id, generation_id, chunk_id, channel_id, author_ids, posted_from, posted_until, terms
)
SELECT
    t.workspace_id, %(generation_id)s, t.chunk_id, t.channel_id, t.author_ids, t.posted_from,
    t.posted_until, t.terms
FROM chunk_terms AS t
INNER JOIN chunks AS c
    ON c.workspace_id = t.workspace_id
    AND c.generation_id = %(generation_id)s
    AND c.chunk_id = t.chunk_id
WHERE t.workspace_id = %(workspace_id)s AND t.generation_id = %(parent)s

-- name: carry_vectors
INSERT INTO vectors_{width} (
    workspace_id, generation_id, chunk_id, channel_id, author_ids, posted_from, posted_until,
    embedding, skipped
)
SELECT
    v.workspace_id, %(generation_id)s, v.chunk_id, v.channel_id, v.author_ids, v.posted_from,
    v.posted_until, v.embedding, v.skipped
FROM vectors_{width} AS v
INNER JOIN chunks AS c
    ON c.workspace_id = v.workspace_id
    AND c.generation_id = %(generation_id)s
    AND c.chunk_id = v.chunk_id
WHERE v.workspace_id = %(workspace_id)s AND v.generation_id = %(parent)s

-- name: insert_sources
INSERT INTO sources (
    workspace_id, generation_id, source_uri, channel_id, path, version_id, media_type, size, sha256,
    title, document_type, valid_from, valid_until, invalid_metadata, facts, depends_on, supersedes,
    relations, problems, first_indexed_at
)
SELECT
    %(workspace_id)s, %(generation_id)s, r.source_uri, r.channel_id, r.path, r.version_id,
    r.media_type, r.size, r.sha256, r.title, r.document_type, r.valid_from, r.valid_until,
    r.invalid_metadata, r.facts, r.depends_on, r.supersedes, r.relations, r.problems,
    r.first_indexed_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    source_uri text, channel_id text, path text, version_id text, media_type text, size bigint,
    sha256 text, title text, document_type text, valid_from date, valid_until date,
    invalid_metadata text, facts jsonb, depends_on text[], supersedes text[], relations jsonb,
    problems jsonb, first_indexed_at timestamptz
)

-- name: insert_pieces
INSERT INTO source_pieces (
    workspace_id, generation_id, message_id, source_uri, ordinal, channel_id, text, content_sha256
)
SELECT
    %(workspace_id)s, %(generation_id)s, given.message_id, given.source_uri, given.ordinal,
    %(collection)s, given.text, given.content_sha256
FROM unnest(
    %(message_ids)s::text[], %(source_uris)s::text[], %(ordinals)s::integer[], %(texts)s::text[],
    %(content_sha256s)s::text[]
) AS given (message_id, source_uri, ordinal, text, content_sha256)

-- name: problems_of_sources
SELECT s.source_uri, (p.problem ->> 'line')::integer, p.problem ->> 'message'
FROM sources AS s
CROSS JOIN LATERAL jsonb_array_elements(s.problems) AS p (problem)
WHERE s.workspace_id = %(workspace_id)s AND s.generation_id = %(generation_id)s

-- name: declared
SELECT source_uri, path, supersedes, relations
FROM sources
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
ORDER BY source_uri

-- name: insert_supersessions
-- A claim that the parent knew keeps its date.
INSERT INTO supersessions (
    workspace_id, generation_id, source_uri, superseded_uri, is_ambiguous, asserted_at
)
SELECT
    %(workspace_id)s, %(generation_id)s, given.newer, given.older, given.is_ambiguous,
    COALESCE(known.asserted_at, now())
FROM unnest(
    %(newer)s::text[], %(older)s::text[], %(is_ambiguous)s::boolean[]
) AS given (newer, older, is_ambiguous)
LEFT JOIN supersessions AS known
    ON known.workspace_id = %(workspace_id)s
    AND known.generation_id = %(parent)s
    AND known.source_uri = given.newer
    AND known.superseded_uri = given.older
ON CONFLICT DO NOTHING

-- name: insert_relations
INSERT INTO document_relations (
    workspace_id, generation_id, source_uri, relation, target_uri, confidence
)
SELECT
    %(workspace_id)s, %(generation_id)s, given.uri, given.relation, given.target, given.confidence
FROM unnest(
    %(uris)s::text[], %(relations)s::text[], %(targets)s::text[], %(confidences)s::float8[]
) AS given (uri, relation, target, confidence)
ON CONFLICT DO NOTHING

-- name: delete_chunks_of_sources
DELETE FROM chunks
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(collection)s
    AND thread_root_id = ANY (%(uris)s::text[])
RETURNING text_sha256

-- name: delete_sources
DELETE FROM sources
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(collection)s
    AND source_uri = ANY (%(uris)s::text[])
RETURNING generation_id

-- name: delete_edges_to
DELETE FROM supersessions AS s
USING generations AS g
WHERE g.workspace_id = s.workspace_id
    AND g.generation_id = s.generation_id
    AND g.collection = %(collection)s
    AND s.workspace_id = %(workspace_id)s
    AND s.superseded_uri = ANY (%(uris)s::text[])

-- name: save_tombstone
INSERT INTO source_tombstones (workspace_id, channel_id, source_uri)
VALUES (%(workspace_id)s, %(collection)s, %(uri)s)
ON CONFLICT (workspace_id, channel_id, source_uri) DO NOTHING

-- name: digests
SELECT generation_id, manifest_digest
FROM generations
WHERE workspace_id = %(workspace_id)s AND collection = %(collection)s AND kind = 'sealed'

-- name: set_corpus
UPDATE generations
SET corpus_fingerprint = %(corpus_fingerprint)s
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s

-- name: counts
SELECT
    (
        SELECT count(*) FROM sources
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    ),
    (
        SELECT count(*) FROM chunks
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    ),
    (
        SELECT count(*) FROM vectors_{width}
        WHERE workspace_id = %(workspace_id)s
            AND generation_id = %(generation_id)s
            AND embedding IS NULL
            AND skipped IS NULL
    )
