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
-- The purge that is under way does for this request too, with what was recorded until now.
UPDATE purge_reports
SET hold_ts = %(hold_ts)s,
    requested_at = now()
WHERE workspace_id = %(workspace_id)s
    AND scope = %(scope)s
    AND purge_id <> %(purge_id)s
    AND finished_at IS NULL
RETURNING purge_id

-- name: read_report
SELECT
    r.scope, r.channel_id, r.deleted, r.requested_at, r.finished_at,
    EXISTS (
        SELECT FROM jobs AS j
        WHERE j.workspace_id = r.workspace_id
            AND j.kind = 'purge'
            AND j.dedup_key = r.purge_id
            AND j.state = 'dead'
    )
FROM purge_reports AS r
WHERE r.workspace_id = %(workspace_id)s AND r.purge_id = %(purge_id)s

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
-- What was posted after the purge was asked for is not what it is about.
DELETE FROM jobs
WHERE workspace_id = %(workspace_id)s
    AND job_id <> %(job_id)s
    AND (
        (
            kind = 'event'
            AND payload -> 'event' ->> 'channel' = %(channel_id)s
            AND state <> 'done'
            AND created_at <= (
                SELECT r.requested_at
                FROM purge_reports AS r
                WHERE r.workspace_id = %(workspace_id)s AND r.purge_id = %(purge_id)s
            )
        )
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

-- name: delete_source_pieces
DELETE FROM source_pieces
WHERE workspace_id = %(workspace_id)s
    AND (generation_id, message_id) IN (
        SELECT generation_id, message_id
        FROM source_pieces
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_supersessions
DELETE FROM supersessions
WHERE workspace_id = %(workspace_id)s
    AND (generation_id, source_uri, superseded_uri) IN (
        SELECT x.generation_id, x.source_uri, x.superseded_uri
        FROM supersessions AS x
        INNER JOIN sources AS s
            ON s.workspace_id = x.workspace_id
            AND s.generation_id = x.generation_id
            AND s.source_uri = x.source_uri
        WHERE x.workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR s.channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_document_relations
DELETE FROM document_relations
WHERE workspace_id = %(workspace_id)s
    AND (generation_id, source_uri, relation, target_uri) IN (
        SELECT x.generation_id, x.source_uri, x.relation, x.target_uri
        FROM document_relations AS x
        INNER JOIN sources AS s
            ON s.workspace_id = x.workspace_id
            AND s.generation_id = x.generation_id
            AND s.source_uri = x.source_uri
        WHERE x.workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR s.channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_sources
DELETE FROM sources
WHERE workspace_id = %(workspace_id)s
    AND (generation_id, source_uri) IN (
        SELECT generation_id, source_uri
        FROM sources
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_fact_events
-- Of a channel's purge: what its documents back, what was decided on their cards, and before both
-- what ends or repeats such a fact.
DELETE FROM fact_events
WHERE workspace_id = %(workspace_id)s
    AND event_id IN (
        SELECT e.event_id
        FROM fact_events AS e
        WHERE e.workspace_id = %(workspace_id)s
            AND (
                %(channel_id)s = ''
                OR %(channel_id)s = ANY (e.channel_ids)
                OR EXISTS (
                    SELECT FROM evidence_cards AS c
                    WHERE c.workspace_id = e.workspace_id
                        AND c.card_id = ANY (e.card_ids)
                        AND c.channel_id = %(channel_id)s
                )
                OR EXISTS (
                    SELECT FROM fact_events AS meant
                    WHERE meant.workspace_id = e.workspace_id
                        AND meant.event_id IN (e.asserted_event_id, e.replaced_by_event_id)
                        AND %(channel_id)s = ANY (meant.channel_ids)
                )
            )
        ORDER BY %(channel_id)s = ANY (e.channel_ids), e.event_id
        LIMIT %(limit)s
    )

-- name: delete_evidence_cards
DELETE FROM evidence_cards
WHERE workspace_id = %(workspace_id)s
    AND card_id IN (
        SELECT card_id
        FROM evidence_cards
        WHERE workspace_id = %(workspace_id)s
            AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
        LIMIT %(limit)s
    )

-- name: delete_source_tombstones
DELETE FROM source_tombstones
WHERE workspace_id = %(workspace_id)s
    AND (channel_id, source_uri) IN (
        SELECT channel_id, source_uri
        FROM source_tombstones
        WHERE workspace_id = %(workspace_id)s
        LIMIT %(limit)s
    )

-- name: delete_calibration_replays
DELETE FROM calibration_replays AS x
USING calibrations AS c
WHERE x.workspace_id = %(workspace_id)s
    AND c.workspace_id = x.workspace_id
    AND c.calibration_id = x.calibration_id
    AND (
        %(channel_id)s = ''
        OR EXISTS (
            SELECT FROM generations AS g
            WHERE g.workspace_id = c.workspace_id
                AND g.generation_id = c.generation_id
                AND g.collection = %(channel_id)s
        )
    )

-- name: delete_calibrations
-- Of a channel's purge: those of its own collection.
DELETE FROM calibrations AS c
WHERE c.workspace_id = %(workspace_id)s
    AND (
        %(channel_id)s = ''
        OR EXISTS (
            SELECT FROM generations AS g
            WHERE g.workspace_id = c.workspace_id
                AND g.generation_id = c.generation_id
                AND g.collection = %(channel_id)s
        )
    )

-- name: delete_label_sets
-- After the calibrations: labels that none of them is measured by.
DELETE FROM label_sets AS l
WHERE l.workspace_id = %(workspace_id)s
    AND NOT EXISTS (
        SELECT FROM calibrations AS c
        WHERE c.workspace_id = l.workspace_id AND c.labels_sha256 = l.labels_sha256
    )

-- name: delete_audit_events
DELETE FROM audit_events
WHERE workspace_id = %(workspace_id)s

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
-- Of a channel's purge: those of its own collection.
DELETE FROM generations
WHERE workspace_id = %(workspace_id)s
    AND (%(channel_id)s = '' OR collection = %(channel_id)s)

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
