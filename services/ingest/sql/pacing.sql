-- name: read_pace
SELECT history_interval_seconds, history_page_size
FROM workspaces
WHERE workspace_id = %(workspace_id)s

-- name: look
SELECT
    greatest(0, extract(epoch FROM next_at - coalesce(%(now)s::timestamptz, now())))::float8
FROM pacing
WHERE workspace_id = %(workspace_id)s AND method = %(method)s

-- name: reserve
-- The slot begins when the last one ended, or now.
INSERT INTO pacing AS p (workspace_id, method, next_at)
VALUES (
    %(workspace_id)s,
    %(method)s,
    coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(interval_seconds)s)
)
ON CONFLICT (workspace_id, method) DO UPDATE
SET next_at = greatest(p.next_at, coalesce(%(now)s::timestamptz, now()))
    + make_interval(secs => %(interval_seconds)s)
WHERE p.next_at <= coalesce(%(now)s::timestamptz, now())
    + make_interval(secs => %(patience_seconds)s)
RETURNING extract(
    epoch FROM next_at
        - make_interval(secs => %(interval_seconds)s)
        - coalesce(%(now)s::timestamptz, now())
)::float8

-- name: count_refusal
UPDATE pacing
SET refusals = refusals + 1
WHERE workspace_id = %(workspace_id)s AND method = %(method)s
RETURNING refusals - 1

-- name: hold_off
UPDATE pacing
SET next_at = greatest(
    next_at, coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(seconds)s)
)
WHERE workspace_id = %(workspace_id)s AND method = %(method)s

-- name: called
UPDATE pacing
SET next_at = greatest(
    next_at,
    coalesce(%(now)s::timestamptz, now())
        + make_interval(secs => %(interval_seconds)s - %(seconds_ago)s)
)
WHERE workspace_id = %(workspace_id)s AND method = %(method)s

-- name: admit
UPDATE pacing
SET refusals = 0
WHERE workspace_id = %(workspace_id)s AND method = %(method)s AND refusals > 0
