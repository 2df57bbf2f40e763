-- name: open_report
-- One open purge a scope; an event that is handled again finds its own.
INSERT INTO purge_reports (workspace_id, purge_id, scope, channel_id, hold_ts)
VALUES (
    %(workspace_id)s, coalesce(nullif(%(purge_id)s, ''), gen_random_uuid()::text), %(scope)s,
    %(channel_id)s, %(hold_ts)s
)
ON CONFLICT DO NOTHING
RETURNING purge_id

-- name: join_open_report
-- The purge that is under way does for this request too.
UPDATE purge_reports
SET hold_ts = %(hold_ts)s
WHERE workspace_id = %(workspace_id)s
    AND scope = %(scope)s
    AND purge_id <> %(purge_id)s
    AND finished_at IS NULL
RETURNING purge_id

-- name: read_report
SELECT scope, channel_id, deleted, requested_at, finished_at
FROM purge_reports
WHERE workspace_id = %(workspace_id)s AND purge_id = %(purge_id)s

-- name: open_workspace_purge
SELECT purge_id
FROM purge_reports
WHERE workspace_id = %(workspace_id)s AND scope = 'workspace' AND finished_at IS NULL

-- name: save_counts
UPDATE purge_reports
SET deleted = %(deleted)s::jsonb
WHERE workspace_id = %(workspace_id)s AND purge_id = %(purge_id)s

-- name: finish_report
UPDATE purge_reports
SET finished_at = now()
WHERE workspace_id = %(workspace_id)s AND purge_id = %(purge_id)s

-- name: finish_reports
-- A workspace's purge ends every other one of it.
UPDATE purge_reports
SET finished_at = now(), hold_ts = ''
WHERE workspace_id = %(workspace_id)s AND finished_at IS NULL

-- name: lift_holds
UPDATE purge_reports
SET hold_ts = ''
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND hold_ts <> ''
    AND (%(joined_ts)s = '' OR hold_ts::numeric < nullif(%(joined_ts)s, '')::numeric)

-- name: read_hold
SELECT max(nullif(hold_ts, '')::numeric)::text
FROM purge_reports
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: newest_ts
SELECT coalesce(max(ts::numeric)::text, '')
FROM messages
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s AND ts <> ''

-- name: forget_installations
DELETE FROM installations
WHERE workspace_id = %(workspace_id)s

-- name: stop_jobs_of_workspace
-- Whoever runs one of them loses the claim; a purge's report says how each purge ended.
DELETE FROM jobs
WHERE workspace_id = %(workspace_id)s AND job_id <> %(job_id)s

-- name: stop_jobs_of_channel
DELETE FROM jobs
WHERE workspace_id = %(workspace_id)s
    AND job_id <> %(job_id)s
    AND (
        (kind = 'event' AND payload -> 'event' ->> 'channel' = %(channel_id)s AND state <> 'done')
        OR (kind IN ('backfill', 'rendering') AND payload ->> 'channel_id' = %(channel_id)s)
        OR (kind = 'command' AND payload ->> 'channel_id' = %(channel_id)s AND state = 'dead')
    )

-- name: delete_messages
DELETE FROM messages
WHERE workspace_id = %(workspace_id)s
    AND message_id IN (
        SELECT message_id
        FROM messages
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: some_chunks
SELECT generation_id, chunk_id, text_sha256
FROM chunks
WHERE workspace_id = %(workspace_id)s
    AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
LIMIT %(limit)s

-- name: delete_chunk_terms
DELETE FROM chunk_terms AS x
USING unnest(%(generation_ids)s::text[], %(chunk_ids)s::text[]) AS gone (generation_id, chunk_id)
WHERE x.workspace_id = %(workspace_id)s
    AND x.generation_id = gone.generation_id
    AND x.chunk_id = gone.chunk_id

-- name: delete_chunk_messages
DELETE FROM chunk_messages AS x
USING unnest(%(generation_ids)s::text[], %(chunk_ids)s::text[]) AS gone (generation_id, chunk_id)
WHERE x.workspace_id = %(workspace_id)s
    AND x.generation_id = gone.generation_id
    AND x.chunk_id = gone.chunk_id

-- name: delete_vectors
DELETE FROM vectors_{width} AS x
USING unnest(%(generation_ids)s::text[], %(chunk_ids)s::text[]) AS gone (generation_id, chunk_id)
WHERE x.workspace_id = %(workspace_id)s
    AND x.generation_id = gone.generation_id
    AND x.chunk_id = gone.chunk_id

-- name: delete_chunks
DELETE FROM chunks AS x
USING unnest(%(generation_ids)s::text[], %(chunk_ids)s::text[]) AS gone (generation_id, chunk_id)
WHERE x.workspace_id = %(workspace_id)s
    AND x.generation_id = gone.generation_id
    AND x.chunk_id = gone.chunk_id

-- name: delete_embedding_cache
DELETE FROM embedding_cache
WHERE workspace_id = %(workspace_id)s
    AND (embedder_fingerprint, text_sha256) IN (
        SELECT embedder_fingerprint, text_sha256
        FROM embedding_cache
        WHERE workspace_id = %(workspace_id)s
        LIMIT %(limit)s
    )

-- name: delete_tombstones
DELETE FROM tombstones
WHERE workspace_id = %(workspace_id)s
    AND message_id IN (
        SELECT message_id FROM tombstones WHERE workspace_id = %(workspace_id)s LIMIT %(limit)s
    )

-- name: delete_people
DELETE FROM people
WHERE workspace_id = %(workspace_id)s
    AND person_id IN (
        SELECT person_id FROM people WHERE workspace_id = %(workspace_id)s LIMIT %(limit)s
    )

-- name: delete_channel_members
DELETE FROM channel_members
WHERE workspace_id = %(workspace_id)s
    AND (channel_id, person_id) IN (
        SELECT channel_id, person_id
        FROM channel_members
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_thread_history
DELETE FROM thread_history
WHERE workspace_id = %(workspace_id)s
    AND (channel_id, root_ts) IN (
        SELECT channel_id, root_ts
        FROM thread_history
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_channel_history
DELETE FROM channel_history
WHERE workspace_id = %(workspace_id)s
    AND channel_id IN (
        SELECT channel_id
        FROM channel_history
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_deliveries
-- Of a channel's purge: finished ones that went to the channel or cite it. One that is under way
-- decides whether an answer is posted twice; it holds ids only.
DELETE FROM deliveries
WHERE workspace_id = %(workspace_id)s
    AND delivery_id IN (
        SELECT delivery_id
        FROM deliveries
        WHERE workspace_id = %(workspace_id)s
            AND (
                %(channel_id)s = ''
                OR (
                    state <> 'begun'
                    AND (
                        channel_id = %(channel_id)s
                        OR EXISTS (
                            SELECT FROM jsonb_array_elements(evidence) AS cited
                            WHERE starts_with(cited ->> 'message_id', %(id_prefix)s)
                        )
                    )
                )
            )
        LIMIT %(limit)s
    )

-- name: delete_feedback
DELETE FROM feedback
WHERE workspace_id = %(workspace_id)s
    AND (delivery_id, person_id) IN (
        SELECT delivery_id, person_id
        FROM feedback
        WHERE workspace_id = %(workspace_id)s
            AND (
                %(channel_id)s = ''
                OR EXISTS (
                    SELECT FROM unnest(message_ids) AS cited (message_id)
                    WHERE starts_with(cited.message_id, %(id_prefix)s)
                )
            )
        LIMIT %(limit)s
    )

-- name: delete_corrections
DELETE FROM corrections
WHERE workspace_id = %(workspace_id)s
    AND (message_id, corrected_by_id) IN (
        SELECT message_id, corrected_by_id
        FROM corrections
        WHERE workspace_id = %(workspace_id)s
            AND (
                %(channel_id)s = ''
                OR starts_with(message_id, %(id_prefix)s)
                OR starts_with(corrected_by_id, %(id_prefix)s)
            )
        LIMIT %(limit)s
    )

-- name: delete_channels
DELETE FROM channels
WHERE workspace_id = %(workspace_id)s
    AND channel_id IN (
        SELECT channel_id
        FROM channels
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_generations
DELETE FROM generations
WHERE workspace_id = %(workspace_id)s

-- name: delete_pacing
DELETE FROM pacing
WHERE workspace_id = %(workspace_id)s

-- name: delete_jobs
DELETE FROM jobs
WHERE workspace_id = %(workspace_id)s AND job_id <> %(job_id)s

-- name: delete_workspace
-- Takes along whatever was written since, and this job's own row.
DELETE FROM workspaces
WHERE workspace_id = %(workspace_id)s
