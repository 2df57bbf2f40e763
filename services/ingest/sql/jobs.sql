-- name: get_job
SELECT
    workspace_id, job_id, kind, state, attempts, max_attempts, last_error, created_at, run_at,
    finished_at
FROM jobs
WHERE workspace_id = %(workspace_id)s AND job_id = %(job_id)s

-- name: list_jobs
SELECT
    workspace_id, job_id, kind, state, attempts, max_attempts, last_error, created_at, run_at,
    finished_at
FROM jobs
WHERE workspace_id = %(workspace_id)s AND state = ANY(%(states)s)
ORDER BY created_at DESC, job_id
LIMIT %(limit)s

-- name: retry_job
UPDATE jobs SET
    state = 'ready',
    attempts = 0,
    run_at = now(),
    turn = next_turn(workspace_id, kind),
    finished_at = NULL
WHERE workspace_id = %(workspace_id)s AND job_id = %(job_id)s AND state = 'dead'
RETURNING
    workspace_id, job_id, kind, state, attempts, max_attempts, last_error, created_at, run_at,
    finished_at
