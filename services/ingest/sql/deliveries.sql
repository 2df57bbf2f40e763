-- name: hold_claim
-- Until the transaction ends nobody else can claim the job.
SELECT job_id
FROM jobs
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'
FOR SHARE

-- name: begin
-- One that could not be posted was seen by nobody and is begun anew.
INSERT INTO deliveries (
    workspace_id, delivery_id, job_id, purpose, claim_number, channel_id, person_id, evidence,
    outcome
)
VALUES (
    %(workspace_id)s, gen_random_uuid()::text, %(job_id)s, %(purpose)s, %(claim_number)s,
    %(channel_id)s, %(person_id)s, %(evidence)s::jsonb, %(outcome)s
)
ON CONFLICT (workspace_id, job_id, purpose) DO UPDATE SET
    state = 'begun',
    claim_number = excluded.claim_number,
    channel_id = excluded.channel_id,
    person_id = excluded.person_id,
    evidence = excluded.evidence,
    outcome = excluded.outcome,
    message_ts = '',
    reason = '',
    begun_at = now(),
    finished_at = NULL
WHERE deliveries.state = 'failed'
RETURNING
    delivery_id, workspace_id, job_id, purpose, state, channel_id, person_id, message_ts, evidence,
    outcome, reason

-- name: read_by_job
SELECT
    delivery_id, workspace_id, job_id, purpose, state, channel_id, person_id, message_ts, evidence,
    outcome, reason
FROM deliveries
WHERE workspace_id = %(workspace_id)s AND job_id = %(job_id)s AND purpose = %(purpose)s

-- name: read
SELECT
    delivery_id, workspace_id, job_id, purpose, state, channel_id, person_id, message_ts, evidence,
    outcome, reason
FROM deliveries
WHERE workspace_id = %(workspace_id)s AND delivery_id = %(delivery_id)s

-- name: finish
UPDATE deliveries SET
    state = %(state)s,
    message_ts = %(message_ts)s,
    reason = %(reason)s,
    finished_at = now()
WHERE workspace_id = %(workspace_id)s AND delivery_id = %(delivery_id)s AND state = 'begun'
RETURNING
    delivery_id, workspace_id, job_id, purpose, state, channel_id, person_id, message_ts, evidence,
    outcome, reason

-- name: record_feedback
INSERT INTO feedback (workspace_id, delivery_id, person_id, is_helpful, question, message_ids)
SELECT
    deliveries.workspace_id, deliveries.delivery_id, %(person_id)s, %(is_helpful)s, %(question)s,
    ARRAY(
        SELECT entry.value ->> 'message_id'
        FROM jsonb_array_elements(deliveries.evidence) WITH ORDINALITY AS entry (value, position)
        ORDER BY entry.position
    )
FROM deliveries
WHERE deliveries.workspace_id = %(workspace_id)s AND deliveries.delivery_id = %(delivery_id)s
ON CONFLICT (workspace_id, delivery_id, person_id) DO UPDATE SET
    is_helpful = excluded.is_helpful,
    question = excluded.question,
    message_ids = excluded.message_ids,
    created_at = now()
