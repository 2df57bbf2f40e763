-- name: enqueue
-- A row that is only read here is locked all the same until the writer commits: a worker can not
-- claim the waiting job, find nothing to do and finish it before what the writer stored is visible.
INSERT INTO jobs (workspace_id, job_id, kind, dedup_key, payload, trace_context)
VALUES (
    %(workspace_id)s, gen_random_uuid()::text, %(kind)s, %(dedup_key)s, %(payload)s::jsonb,
    %(trace_context)s
)
ON CONFLICT (workspace_id, kind, dedup_key) DO UPDATE SET
    state = CASE WHEN jobs.state = 'running' THEN 'running' ELSE 'ready' END,
    wanted_again = (jobs.state = 'running'),
    run_at = CASE WHEN jobs.state = 'running' THEN jobs.run_at ELSE now() END,
    attempts = CASE WHEN jobs.state = 'running' THEN jobs.attempts ELSE 0 END,
    payload = excluded.payload,
    trace_context = excluded.trace_context,
    finished_at = NULL
WHERE jobs.kind = ANY(%(repeated_kinds)s) AND jobs.state <> 'ready'

-- name: notify
SELECT pg_notify('recall_jobs', '')

-- name: still_holds
SELECT job_id
FROM jobs
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'

-- name: claim
WITH claimable AS (
    SELECT jobs.workspace_id, jobs.job_id
    FROM jobs
    WHERE jobs.kind = ANY(%(kinds)s)
        AND (
            (jobs.state = 'ready' AND jobs.run_at <= now())
            OR (
                jobs.state = 'running'
                AND (
                    jobs.heartbeat_at < now() - make_interval(secs => %(missed_seconds)s)
                    OR jobs.leased_until < now()
                )
            )
        )
    ORDER BY array_position(%(kinds_in_order)s::text[], jobs.kind), jobs.run_at, jobs.job_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs SET
    state = 'running',
    claim_number = jobs.claim_number + 1,
    leased_until = now() + make_interval(secs => %(lease_seconds)s),
    heartbeat_at = now()
FROM claimable
WHERE jobs.workspace_id = claimable.workspace_id AND jobs.job_id = claimable.job_id
RETURNING
    jobs.workspace_id, jobs.job_id, jobs.kind, jobs.payload, jobs.claim_number, jobs.attempts,
    jobs.max_attempts, jobs.trace_context

-- name: heartbeat
UPDATE jobs SET
    heartbeat_at = now(),
    leased_until = now() + make_interval(secs => %(lease_seconds)s)
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'

-- name: complete
-- What Slack sent is needed no more; a finished job holds ids only.
UPDATE jobs SET
    payload = payload - 'envelope',
    state = CASE WHEN wanted_again THEN 'ready' ELSE 'done' END,
    finished_at = CASE WHEN wanted_again THEN NULL ELSE now() END,
    wanted_again = false,
    run_at = now(),
    attempts = 0,
    last_error = '',
    leased_until = NULL,
    heartbeat_at = NULL
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'

-- name: retry
-- What was asked for meanwhile is done by the same next run.
UPDATE jobs SET
    state = 'ready',
    wanted_again = false,
    run_at = now() + make_interval(secs => %(delay_seconds)s),
    attempts = %(attempts)s,
    last_error = %(last_error)s,
    leased_until = NULL,
    heartbeat_at = NULL
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'

-- name: bury
-- A job asked for again while it ran its last attempt begins anew, like a dead one asked for again.
-- A dead job holds ids only.
UPDATE jobs SET
    payload = payload - 'envelope',
    state = CASE WHEN wanted_again THEN 'ready' ELSE 'dead' END,
    finished_at = CASE WHEN wanted_again THEN NULL ELSE now() END,
    attempts = CASE WHEN wanted_again THEN 0 ELSE %(attempts)s END,
    wanted_again = false,
    run_at = now(),
    last_error = %(last_error)s,
    leased_until = NULL,
    heartbeat_at = NULL
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'

-- name: release
UPDATE jobs SET
    state = 'ready',
    wanted_again = false,
    run_at = now(),
    leased_until = NULL,
    heartbeat_at = NULL
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'
