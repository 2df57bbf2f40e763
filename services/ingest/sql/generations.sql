-- name: record_embedder
INSERT INTO embedders (fingerprint, name, provider, model, revision, width)
VALUES (%(fingerprint)s, %(name)s, %(provider)s, %(model)s, %(revision)s, %(width)s)
ON CONFLICT (fingerprint) DO NOTHING

-- name: create_generation
INSERT INTO generations (
    workspace_id, generation_id, source, chunker_version, embedder_fingerprint, width
)
VALUES (
    %(workspace_id)s, %(generation_id)s, %(source)s, %(chunker_version)s, %(fingerprint)s,
    %(width)s
)

-- name: read_generations
SELECT
    g.generation_id, g.workspace_id, g.source, g.state, g.embedder_fingerprint, e.name, g.width,
    g.chunker_version, g.created_at, g.promoted_at, g.superseded_at, g.failure_reason
FROM generations AS g
INNER JOIN embedders AS e ON e.fingerprint = g.embedder_fingerprint
WHERE g.workspace_id = %(workspace_id)s AND g.kind = 'live'
ORDER BY g.created_at DESC, g.generation_id DESC

-- name: set_serving
UPDATE generations
SET state = 'active', promoted_at = now(), superseded_at = NULL
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s

-- name: supersede_active
UPDATE generations
SET state = 'ready', superseded_at = now()
WHERE workspace_id = %(workspace_id)s AND kind = 'live' AND state = 'active'

-- name: retire_superseded
-- One that stopped serving stays searchable for 30 minutes.
UPDATE generations
SET state = 'retired'
WHERE workspace_id = %(workspace_id)s
    AND kind = 'live'
    AND state = 'ready'
    AND superseded_at <= now() - interval '30 minutes'
RETURNING generation_id

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
RETURNING text_sha256

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
ANALYZE messages, chunks, chunk_messages, chunk_terms, vectors_384, vectors_1536
