-- name: lock_generation
SELECT state
FROM generations
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
FOR UPDATE

-- name: set_validating
UPDATE generations
SET state = 'validating'
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s

-- name: set_ready
UPDATE generations
SET state = 'ready', validated_at = now(), validation = %(validation)s::jsonb
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s

-- name: set_failed
UPDATE generations
SET state = 'failed', failure_reason = %(reason)s
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND state IN ('building', 'validating', 'ready')

-- name: published_calibration
-- Locked: what certifies a promotion can not be voided before it commits.
SELECT c.calibration_id, c.model, c.model_sha256
FROM calibrations AS c
INNER JOIN generations AS g
    ON g.workspace_id = c.workspace_id AND g.generation_id = c.generation_id
WHERE c.workspace_id = %(workspace_id)s
    AND c.generation_id = %(generation_id)s
    AND c.state = 'published'
    AND c.pipeline_fingerprint = g.pipeline_fingerprint
    AND (g.kind = 'live' OR c.corpus_fingerprint = g.corpus_fingerprint)
FOR SHARE OF c

-- name: retire_superseded
-- One that stopped serving stays searchable for 30 minutes.
UPDATE generations
SET state = 'retired'
WHERE workspace_id = %(workspace_id)s
    AND source = %(source)s
    AND collection = %(collection)s
    AND generation_id <> %(generation_id)s
    AND state = 'ready'
    AND superseded_at <= now() - interval '30 minutes'
RETURNING generation_id

-- name: supersede_active
UPDATE generations
SET state = 'ready', superseded_at = now()
WHERE workspace_id = %(workspace_id)s
    AND source = %(source)s
    AND collection = %(collection)s
    AND state = 'active'
RETURNING generation_id

-- name: set_serving
UPDATE generations
SET state = 'active', promoted_at = now(), superseded_at = NULL
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s

-- name: retire_left
-- Those that nobody can go back to: of each collection, what stopped serving over 30 minutes ago
-- but for the one that served last. Returned with every one that holds no rows or should hold none.
WITH left_behind AS (
    UPDATE generations AS g
    SET state = 'retired'
    WHERE g.workspace_id = %(workspace_id)s
        AND g.state = 'ready'
        AND g.superseded_at <= now() - interval '30 minutes'
        AND EXISTS (
            SELECT FROM generations AS later
            WHERE later.workspace_id = g.workspace_id
                AND later.source = g.source
                AND later.collection = g.collection
                AND later.state = 'ready'
                AND later.superseded_at > g.superseded_at
        )
    RETURNING g.generation_id
)
SELECT generation_id, true FROM left_behind
UNION
SELECT g.generation_id, false
FROM generations AS g
WHERE g.workspace_id = %(workspace_id)s AND g.state IN ('retired', 'failed')
ORDER BY generation_id
