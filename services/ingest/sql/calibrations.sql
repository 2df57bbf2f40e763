-- name: targets
SELECT COALESCE(false_confirm_target, 0.10), COALESCE(false_abstain_target, 0.10)
FROM workspaces
WHERE workspace_id = %(workspace_id)s

-- name: fingerprints
SELECT
    g.pipeline_fingerprint,
    g.corpus_fingerprint,
    g.state,
    (
        SELECT count(*) FROM chunks AS c
        WHERE c.workspace_id = g.workspace_id AND c.generation_id = g.generation_id
    )
FROM generations AS g
WHERE g.workspace_id = %(workspace_id)s AND g.generation_id = %(generation_id)s

-- name: hold_generation
SELECT 1
FROM generations
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
FOR SHARE

-- name: save_labels
INSERT INTO label_sets (workspace_id, labels_sha256, labels)
VALUES (%(workspace_id)s, %(labels_sha256)s, %(labels)s::jsonb)
ON CONFLICT (workspace_id, labels_sha256) DO NOTHING

-- name: read_labels
SELECT l.labels
FROM label_sets AS l
INNER JOIN calibrations AS c
    ON c.workspace_id = l.workspace_id AND c.labels_sha256 = l.labels_sha256
WHERE c.workspace_id = %(workspace_id)s AND c.calibration_id = %(calibration_id)s

-- name: erased_among
SELECT message_id
FROM tombstones
WHERE workspace_id = %(workspace_id)s AND message_id = ANY (%(message_ids)s::text[])

-- name: feedback_labels
-- The newest judgement of each question counts.
SELECT DISTINCT ON (question) question, is_helpful, message_ids
FROM feedback
WHERE workspace_id = %(workspace_id)s AND question <> ''
ORDER BY question, created_at DESC

-- name: supersede_published
UPDATE calibrations
SET state = 'superseded', replay_at = 'infinity'
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND state = 'published'

-- name: save_calibration
INSERT INTO calibrations (
    workspace_id, calibration_id, generation_id, rule, state, reason, model, model_sha256,
    labels_sha256, pipeline_fingerprint, corpus_fingerprint, corpus_chunks, false_confirm_target,
    false_abstain_target, more_answerable_needed, more_unanswerable_needed, replay_at
)
VALUES (
    %(workspace_id)s, %(calibration_id)s, %(generation_id)s, %(rule)s, %(state)s, %(reason)s,
    %(model)s::jsonb, %(model_sha256)s, %(labels_sha256)s, %(pipeline_fingerprint)s,
    %(corpus_fingerprint)s, %(corpus_chunks)s, %(false_confirm_target)s,
    %(false_abstain_target)s, %(more_answerable_needed)s, %(more_unanswerable_needed)s,
    CASE WHEN %(state)s = 'published' THEN now() + interval '1 day' ELSE 'infinity' END
)

-- name: save_replay
INSERT INTO calibration_replays (
    workspace_id, calibration_id, measured_at, cause, answerable, unanswerable, false_confirms,
    false_abstains, false_confirm_bound, false_abstain_bound, area_under_curve
)
VALUES (
    %(workspace_id)s, %(calibration_id)s, clock_timestamp(), %(cause)s, %(answerable)s,
    %(unanswerable)s, %(false_confirms)s, %(false_abstains)s, %(false_confirm_bound)s,
    %(false_abstain_bound)s, %(area_under_curve)s
)

-- name: replayed
UPDATE calibrations
SET
    replay_at = now() + interval '1 day',
    replay_cause = 'daily',
    corpus_chunks = %(corpus_chunks)s,
    false_confirm_target = %(false_confirm_target)s,
    false_abstain_target = %(false_abstain_target)s
WHERE workspace_id = %(workspace_id)s AND calibration_id = %(calibration_id)s

-- name: void
UPDATE calibrations
SET state = 'voided', reason = %(reason)s, voided_at = now(), replay_at = 'infinity'
WHERE workspace_id = %(workspace_id)s
    AND calibration_id = %(calibration_id)s
    AND state = 'published'

-- name: read_calibration
SELECT generation_id, state, model, model_sha256, labels_sha256, pipeline_fingerprint, rule
FROM calibrations
WHERE workspace_id = %(workspace_id)s AND calibration_id = %(calibration_id)s
FOR UPDATE

-- name: list_calibrations
SELECT
    calibration_id, generation_id, state, rule, model, reason, more_answerable_needed,
    more_unanswerable_needed, created_at, false_confirm_target, false_abstain_target, labels_sha256
FROM calibrations
WHERE workspace_id = %(workspace_id)s
    AND (%(generation_id)s = '' OR generation_id = %(generation_id)s)
    AND (%(calibration_id)s = '' OR calibration_id = %(calibration_id)s)
ORDER BY created_at DESC, calibration_id DESC

-- name: list_replays
SELECT
    calibration_id, measured_at, cause, answerable, unanswerable, false_confirms, false_abstains,
    false_confirm_bound, false_abstain_bound, area_under_curve
FROM calibration_replays
WHERE workspace_id = %(workspace_id)s AND calibration_id = ANY (%(calibration_ids)s::text[])
ORDER BY measured_at

-- name: calibrated_workspaces
-- By the queue role: most workspaces have nothing that could be due.
SELECT DISTINCT workspace_id
FROM calibrations
WHERE state = 'published'
ORDER BY workspace_id

-- name: due_replays
-- Due by time, or since a twentieth of the corpus changed. What is sealed changes only in its targets.
SELECT
    c.calibration_id,
    c.generation_id,
    g.source,
    g.collection,
    CASE WHEN c.replay_at <= now() THEN c.replay_cause ELSE 'corpus_changed' END
FROM calibrations AS c
INNER JOIN generations AS g
    ON g.workspace_id = c.workspace_id AND g.generation_id = c.generation_id
WHERE c.workspace_id = %(workspace_id)s
    AND c.state = 'published'
    AND (g.kind = 'live' OR c.replay_cause = 'targets')
    AND (
        c.replay_at <= now()
        OR abs(c.corpus_chunks - (
            SELECT count(*) FROM chunks AS k
            WHERE k.workspace_id = c.workspace_id AND k.generation_id = c.generation_id
        )) > 0.05 * greatest(c.corpus_chunks, 1)
    )
ORDER BY c.replay_at
