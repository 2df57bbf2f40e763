-- name: record_embedder
INSERT INTO embedders (fingerprint, name, provider, model, revision, width)
VALUES (%(fingerprint)s, %(name)s, %(provider)s, %(model)s, %(revision)s, %(width)s)
ON CONFLICT (fingerprint) DO NOTHING

-- name: create_generation
-- What is sealed begins with the corpus of its manifest; an erasure derives it anew.
INSERT INTO generations (
    workspace_id, generation_id, source, collection, kind, parent_generation_id,
    pipeline_fingerprint, text_search, profile, manifest_digest, corpus_fingerprint,
    chunker_version, embedder_fingerprint, width
)
VALUES (
    %(workspace_id)s, %(generation_id)s, %(source)s, %(collection)s, %(kind)s,
    %(parent_generation_id)s, %(pipeline_fingerprint)s, %(text_search)s, %(profile)s,
    %(manifest_digest)s, %(manifest_digest)s, %(chunker_version)s, %(fingerprint)s, %(width)s
)

-- name: set_filled
UPDATE generations
SET filled_at = coalesce(filled_at, clock_timestamp())
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s

-- name: read_generations
-- A published calibration holds while what it was measured on is what the generation holds.
SELECT
    g.generation_id, g.workspace_id, g.source, g.collection, g.kind = 'sealed', g.state,
    g.embedder_fingerprint, e.name, g.width, g.chunker_version, g.created_at, g.promoted_at,
    g.superseded_at, g.validated_at, g.parent_generation_id, g.pipeline_fingerprint,
    g.manifest_digest, g.corpus_fingerprint,
    (
        SELECT
            CASE
                WHEN bool_or(
                    c.state = 'published'
                    AND c.pipeline_fingerprint = g.pipeline_fingerprint
                    AND (g.kind = 'live' OR c.corpus_fingerprint = g.corpus_fingerprint)
                ) THEN 'certified'
                WHEN bool_or(c.state <> 'rejected') THEN 'stale'
                WHEN count(*) > 0 THEN 'uncertified'
                ELSE ''
            END
        FROM calibrations AS c
        WHERE c.workspace_id = g.workspace_id AND c.generation_id = g.generation_id
    ),
    g.failure_reason
FROM generations AS g
INNER JOIN embedders AS e ON e.fingerprint = g.embedder_fingerprint
WHERE g.workspace_id = %(workspace_id)s
    AND (%(states)s::text[] IS NULL OR g.state = ANY (%(states)s::text[]))
ORDER BY g.created_at DESC, g.generation_id DESC

-- name: clear_some_chunks
DELETE FROM chunks
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND chunk_id IN (
        SELECT chunk_id
        FROM chunks
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
        LIMIT %(limit)s
    )
    AND EXISTS (
        SELECT FROM generations
        WHERE workspace_id = %(workspace_id)s
            AND generation_id = %(generation_id)s
            AND state IN ('retired', 'failed')
    )
RETURNING text_sha256

-- name: clear_some_sources
DELETE FROM sources
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND source_uri IN (
        SELECT source_uri
        FROM sources
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
        LIMIT %(limit)s
    )
    AND EXISTS (
        SELECT FROM generations
        WHERE workspace_id = %(workspace_id)s
            AND generation_id = %(generation_id)s
            AND state IN ('retired', 'failed')
    )
RETURNING source_uri

-- name: forget_unused_embedders
DELETE FROM embedding_cache
WHERE workspace_id = %(workspace_id)s
    AND (embedder_fingerprint, text_sha256) IN (
        SELECT known.embedder_fingerprint, known.text_sha256
        FROM embedding_cache AS known
        WHERE known.workspace_id = %(workspace_id)s
            AND NOT EXISTS (
                SELECT FROM generations AS g
                WHERE g.workspace_id = known.workspace_id
                    AND g.embedder_fingerprint = known.embedder_fingerprint
                    AND g.state NOT IN ('retired', 'failed')
            )
        LIMIT %(limit)s
    )

-- name: count_chunks
SELECT
    (
        SELECT count(*) FROM chunks
        WHERE workspace_id = %(workspace_id)s
            AND generation_id = %(generation_id)s
            AND (%(channel_ids)s::text[] IS NULL OR channel_id = ANY (%(channel_ids)s::text[]))
    ),
    (
        SELECT count(*) FROM vectors_{width}
        WHERE workspace_id = %(workspace_id)s
            AND generation_id = %(generation_id)s
            AND (%(channel_ids)s::text[] IS NULL OR channel_id = ANY (%(channel_ids)s::text[]))
            AND embedding IS NULL
            AND skipped IS NULL
    )

-- name: count_behind
SELECT count(*)
FROM vectors_{width} AS v
INNER JOIN generations AS g
    ON g.workspace_id = v.workspace_id AND g.generation_id = v.generation_id
WHERE v.workspace_id = %(workspace_id)s
    AND v.generation_id = %(generation_id)s
    AND v.embedding IS NULL
    AND v.skipped IS NULL
    AND (
        v.written_at <= coalesce(g.filled_at, 'infinity')
        OR v.written_at <= now() - make_interval(secs => %(catch_up_seconds)s)
    )

-- name: count_gaps
-- Differences of sets: linear whatever the planner knows of freshly loaded tables.
SELECT
    (
        SELECT count(*) FROM (
            SELECT message_id FROM messages WHERE workspace_id = %(workspace_id)s
            EXCEPT
            SELECT message_id FROM chunk_messages
            WHERE workspace_id = %(workspace_id)s
                AND generation_id = %(generation_id)s
                AND chunk_id IN (
                    SELECT chunk_id FROM chunks
                    WHERE workspace_id = %(workspace_id)s
                        AND generation_id = %(generation_id)s
                        AND kind = 'message'
                )
        ) AS without_chunk
    ),
    (
        SELECT count(*) FROM (
            SELECT chunk_id FROM chunks
            WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
            EXCEPT (
                SELECT chunk_id FROM chunk_terms
                WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
                INTERSECT
                SELECT chunk_id FROM vectors_{width}
                WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
            )
        ) AS without_rows
    )

-- name: read_embedding_job
SELECT state, last_error
FROM jobs
WHERE workspace_id = %(workspace_id)s
    AND kind = 'embedding'
    AND dedup_key = %(generation_id)s

-- name: refresh_statistics
ANALYZE messages, sources, source_pieces, chunks, chunk_messages, chunk_terms, vectors_384,
    vectors_1536
