-- name: enqueue
-- A row that is only read here is locked all the same until the writer commits: a worker can not
-- claim the waiting job, find nothing to do and finish it before what the writer stored is visible.
INSERT INTO jobs (workspace_id, job_id, kind, dedup_key, payload, trace_context, turn)
VALUES (
    %(workspace_id)s, gen_random_uuid()::text, %(kind)s, %(dedup_key)s, %(payload)s::jsonb,
    %(trace_context)s, next_turn(%(workspace_id)s, %(kind)s)
)
ON CONFLICT (workspace_id, kind, dedup_key) DO UPDATE SET
    state = CASE WHEN jobs.state = 'running' THEN 'running' ELSE 'ready' END,
    wanted_again = (jobs.state = 'running'),
    run_at = CASE WHEN jobs.state = 'running' THEN jobs.run_at ELSE now() END,
    turn = CASE WHEN jobs.state = 'running' THEN jobs.turn ELSE excluded.turn END,
    attempts = CASE WHEN jobs.state = 'running' THEN jobs.attempts ELSE 0 END,
    payload = excluded.payload,
    trace_context = excluded.trace_context,
    finished_at = NULL
WHERE jobs.kind = ANY(%(repeated_kinds)s) AND jobs.state <> 'ready'

-- name: notify
SELECT pg_notify('recall_jobs', %(kind)s)

-- name: notify_commands
-- What they waited for may just have ended.
SELECT pg_notify('recall_jobs', 'command')
WHERE EXISTS (
    SELECT FROM jobs
    WHERE workspace_id = %(workspace_id)s AND kind = 'command' AND state = 'ready'
)

-- name: still_held
SELECT jobs.job_id
FROM jobs
INNER JOIN unnest(%(job_ids)s::text[], %(claim_numbers)s::bigint[]) AS held (job_id, claim_number)
    ON jobs.job_id = held.job_id AND jobs.claim_number = held.claim_number
WHERE jobs.workspace_id = %(workspace_id)s AND jobs.state = 'running'

-- name: claim
-- Kind by kind in the given order: first jobs whose holder fell silent (they had their turn), then
-- the ready ones by turn. Lateral and limited, so that no row is locked that is not claimed. A
-- command waits for the older purges and events of its workspace that may still run.
WITH claimable AS (
    SELECT found.workspace_id, found.job_id
    FROM unnest(%(kinds)s::text[]) WITH ORDINALITY AS wanted (kind, urgency)
    CROSS JOIN LATERAL (
        SELECT silent.workspace_id, silent.job_id
        FROM (
            SELECT held.workspace_id, held.job_id
            FROM jobs held
            WHERE held.kind = wanted.kind
                AND held.state = 'running'
                AND (
                    held.heartbeat_at < now() - make_interval(secs => %(missed_seconds)s)
                    OR held.leased_until < now()
                )
            ORDER BY held.heartbeat_at
            LIMIT %(limit)s
            FOR UPDATE OF held SKIP LOCKED
        ) silent
        UNION ALL
        SELECT in_line.workspace_id, in_line.job_id
        FROM (
            SELECT ready.workspace_id, ready.job_id
            FROM jobs ready
            WHERE ready.kind = wanted.kind
                AND ready.state = 'ready'
                AND ready.run_at <= now()
                AND (
                    ready.kind <> 'command'
                    OR NOT EXISTS (
                        SELECT FROM jobs older
                        WHERE older.workspace_id = ready.workspace_id
                            AND older.kind IN ('purge', 'event')
                            AND older.state IN ('ready', 'running')
                            AND older.created_at <= ready.created_at
                    )
                )
            ORDER BY ready.turn, ready.run_at
            LIMIT %(limit)s
            FOR UPDATE OF ready SKIP LOCKED
        ) in_line
    ) found
    LIMIT %(limit)s
)
UPDATE jobs SET
    state = 'running',
    claim_number = jobs.claim_number + 1,
    lapses = jobs.lapses + (jobs.state = 'running')::integer,
    max_attempts = %(max_attempts)s,
    leased_until = now() + make_interval(secs => %(lease_seconds)s),
    heartbeat_at = now()
FROM claimable
WHERE jobs.workspace_id = claimable.workspace_id AND jobs.job_id = claimable.job_id
RETURNING
    jobs.workspace_id, jobs.job_id, jobs.claim_number, jobs.kind, jobs.payload, jobs.attempts,
    jobs.max_attempts, jobs.trace_context, jobs.turn, jobs.lapses

-- name: claim_more
-- In line behind a job that was claimed just now. None that ever went wrong: it would take those
-- with it that are done together with it.
WITH claimable AS (
    SELECT ready.workspace_id, ready.job_id
    FROM jobs ready
    WHERE ready.kind = %(kind)s
        AND ready.state = 'ready'
        AND ready.run_at <= now()
        AND ready.attempts = 0
        AND ready.lapses = 0
    ORDER BY ready.turn, ready.run_at
    LIMIT %(limit)s
    FOR UPDATE OF ready SKIP LOCKED
)
UPDATE jobs SET
    state = 'running',
    claim_number = jobs.claim_number + 1,
    max_attempts = %(max_attempts)s,
    leased_until = now() + make_interval(secs => %(lease_seconds)s),
    heartbeat_at = now()
FROM claimable
WHERE jobs.workspace_id = claimable.workspace_id AND jobs.job_id = claimable.job_id
RETURNING
    jobs.workspace_id, jobs.job_id, jobs.claim_number, jobs.kind, jobs.payload, jobs.attempts,
    jobs.max_attempts, jobs.trace_context, jobs.turn, jobs.lapses

-- name: read_attempts
SELECT attempts, max_attempts
FROM jobs
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'

-- name: heartbeat
UPDATE jobs SET
    heartbeat_at = now(),
    leased_until = now() + make_interval(secs => %(lease_seconds)s)
FROM unnest(
    %(workspace_ids)s::text[], %(job_ids)s::text[], %(claim_numbers)s::bigint[]
) AS held (workspace_id, job_id, claim_number)
WHERE jobs.workspace_id = held.workspace_id
    AND jobs.job_id = held.job_id
    AND jobs.claim_number = held.claim_number
    AND jobs.state = 'running'
RETURNING jobs.workspace_id, jobs.job_id, jobs.kind, jobs.state

-- name: complete
-- What was asked for is needed no more: a done job holds no text.
UPDATE jobs SET
    payload = CASE WHEN jobs.wanted_again THEN jobs.payload ELSE '{}' END,
    state = CASE WHEN jobs.wanted_again THEN 'ready' ELSE 'done' END,
    finished_at = CASE WHEN jobs.wanted_again THEN NULL ELSE now() END,
    turn = CASE
        WHEN jobs.wanted_again THEN next_turn(jobs.workspace_id, jobs.kind) ELSE jobs.turn
    END,
    -- Whoever wants it again may have said when.
    run_at = CASE WHEN jobs.wanted_again THEN greatest(jobs.run_at, now()) ELSE now() END,
    wanted_again = false,
    attempts = 0,
    last_error = '',
    lapses = 0,
    leased_until = NULL,
    heartbeat_at = NULL
FROM unnest(
    %(workspace_ids)s::text[], %(job_ids)s::text[], %(claim_numbers)s::bigint[]
) AS held (workspace_id, job_id, claim_number)
WHERE jobs.workspace_id = held.workspace_id
    AND jobs.job_id = held.job_id
    AND jobs.claim_number = held.claim_number
    AND jobs.state = 'running'
RETURNING jobs.workspace_id, jobs.job_id, jobs.kind, jobs.state

-- name: retry
-- What was asked for meanwhile is done by the same next run. It queues up behind its workspace's
-- other jobs: a workspace whose jobs all fail does not get more than its share.
UPDATE jobs SET
    state = 'ready',
    wanted_again = false,
    run_at = now() + make_interval(secs => %(delay_seconds)s),
    turn = next_turn(workspace_id, kind),
    attempts = %(attempts)s,
    last_error = %(last_error)s,
    lapses = 0,
    leased_until = NULL,
    heartbeat_at = NULL
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'
RETURNING kind, state

-- name: bury
-- A job asked for again while it ran its last attempt begins anew, like a dead one asked for again.
-- A dead one keeps what a retry needs, but no message text: an event keeps its ids.
UPDATE jobs SET
    payload = CASE WHEN wanted_again THEN payload ELSE payload - 'envelope' END,
    state = CASE WHEN wanted_again THEN 'ready' ELSE 'dead' END,
    finished_at = CASE WHEN wanted_again THEN NULL ELSE now() END,
    turn = CASE WHEN wanted_again THEN next_turn(workspace_id, kind) ELSE turn END,
    attempts = CASE WHEN wanted_again THEN 0 ELSE %(attempts)s END,
    wanted_again = false,
    run_at = now(),
    last_error = %(last_error)s,
    lapses = 0,
    leased_until = NULL,
    heartbeat_at = NULL
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'
RETURNING kind, state

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
RETURNING kind, state

-- name: forget_finished
-- In small steps, so that no lock is held for long. Jobs of the repeated kinds are one a piece of
-- work, and their last outcome is shown.
DELETE FROM jobs
USING (
    SELECT old.workspace_id, old.job_id
    FROM jobs old
    WHERE old.finished_at < now() - make_interval(days => %(kept_days)s)
        AND (
            old.state = 'done'
            OR old.finished_at < now() - make_interval(days => %(dead_kept_days)s)
        )
        AND NOT old.kind = ANY(%(repeated_kinds)s)
    ORDER BY old.finished_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
) forgotten
WHERE jobs.workspace_id = forgotten.workspace_id AND jobs.job_id = forgotten.job_id
