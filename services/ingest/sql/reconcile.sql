-- name: installed
-- As the queue role: across tenants.
SELECT DISTINCT workspace_id
FROM installations
ORDER BY workspace_id

-- name: due
-- A reading that died stays dead until somebody retries it or asks anew: the same failure each
-- minute would help nobody.
SELECT found.workspace_id, found.is_reading_due, found.is_listing_due
FROM (
    SELECT
        i.workspace_id,
        EXISTS (
            SELECT FROM channel_history AS h
            WHERE h.workspace_id = i.workspace_id
                AND h.state = 'complete'
                AND h.open_pass = ''
                AND h.reconcile_at <= coalesce(%(now)s::timestamptz, now())
                AND h.next_at <= coalesce(%(now)s::timestamptz, now())
        )
        AND NOT EXISTS (
            SELECT FROM jobs AS j
            WHERE j.workspace_id = i.workspace_id
                AND j.kind = 'backfill'
                AND j.dedup_key = 'history'
                AND j.state = 'dead'
        ) AS is_reading_due,
        NOT EXISTS (
            SELECT FROM jobs AS j
            WHERE j.workspace_id = i.workspace_id
                AND j.kind = 'backfill'
                AND j.dedup_key = 'workspace'
                AND (
                    j.state IN ('ready', 'running')
                    OR j.finished_at
                        > coalesce(%(now)s::timestamptz, now()) - make_interval(hours => %(hours)s)
                )
        ) AS is_listing_due
    FROM installations AS i
) AS found
WHERE found.is_reading_due OR found.is_listing_due
ORDER BY found.workspace_id
