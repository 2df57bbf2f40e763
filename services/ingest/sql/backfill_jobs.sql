-- name: come_back
UPDATE jobs
SET payload = CASE WHEN wanted_again THEN payload ELSE %(payload)s::jsonb END,
    wanted_again = true,
    run_at = now() + make_interval(secs => %(delay_seconds)s)
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'

-- name: is_listing_due
-- One under way sees on its next page what came since.
SELECT NOT EXISTS (
    SELECT FROM jobs
    WHERE workspace_id = %(workspace_id)s
        AND kind = 'backfill'
        AND dedup_key = 'workspace'
        AND (
            state IN ('ready', 'running')
            OR finished_at
                > coalesce(%(now)s::timestamptz, now()) - make_interval(mins => %(minutes)s)
        )
)

-- name: bring_forward
UPDATE jobs
SET run_at = now()
WHERE workspace_id = %(workspace_id)s
    AND kind = 'backfill'
    AND dedup_key = %(dedup_key)s
    AND state = 'ready'
    AND run_at > now()
