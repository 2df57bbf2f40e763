-- name: next_channel
-- A channel that is being purged has no turn.
WITH last_turn AS (
    SELECT completed_at IS NULL AS is_first
    FROM channel_history
    WHERE workspace_id = %(workspace_id)s AND read_at IS NOT NULL
    ORDER BY read_at DESC
    LIMIT 1
)
SELECT
    h.channel_id, h.state, h.pass_number, h.open_pass, h.latest_ts, h.oldest_ts, h.cursor,
    h.read_down_to_ts, h.attempts
FROM channel_history AS h
WHERE h.workspace_id = %(workspace_id)s
    AND h.next_at <= coalesce(%(now)s::timestamptz, now())
    AND (
        h.state IN ('waiting', 'reading', 'failed')
        OR (
            h.state = 'complete'
            AND (h.open_pass <> '' OR h.reconcile_at <= coalesce(%(now)s::timestamptz, now()))
        )
    )
    AND NOT EXISTS (
        SELECT FROM purge_reports AS p
        WHERE p.workspace_id = h.workspace_id
            AND p.channel_id IN ('', h.channel_id)
            AND p.finished_at IS NULL
    )
ORDER BY
    (h.completed_at IS NULL) IS NOT DISTINCT FROM (SELECT is_first FROM last_turn),
    h.read_at NULLS FIRST,
    h.channel_id
LIMIT 1

-- name: begin_pass
UPDATE channel_history
SET state = CASE WHEN state = 'complete' THEN state ELSE 'reading' END,
    pass_number = pass_number + 1,
    open_pass = %(kind)s,
    pass_began_at = coalesce(%(now)s::timestamptz, now()),
    latest_ts = '',
    oldest_ts = coalesce(
        greatest(
            nullif(%(oldest_ts)s, '')::numeric,
            round(
                extract(
                    epoch FROM CASE
                        WHEN %(days)s::integer IS NOT NULL THEN least(
                            coalesce(%(now)s::timestamptz, now())
                                - make_interval(days => %(days)s::integer),
                            looked_at - interval '1 hour'
                        )
                    END
                ),
                6
            )
        )::text,
        ''
    ),
    cursor = '',
    read_down_to_ts = '',
    attempts = 0,
    next_at = coalesce(%(now)s::timestamptz, now())
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s
RETURNING
    channel_id, state, pass_number, open_pass, latest_ts, oldest_ts, cursor, read_down_to_ts,
    attempts

-- name: read_channel
SELECT
    channel_id, state, pass_number, open_pass, latest_ts, oldest_ts, cursor, read_down_to_ts,
    attempts
FROM channel_history
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s
FOR UPDATE

-- name: read_channels
SELECT
    channel_id, state, pass_number, open_pass, latest_ts, oldest_ts, cursor, read_down_to_ts,
    attempts
FROM channel_history
WHERE workspace_id = %(workspace_id)s AND state <> 'left'
ORDER BY channel_id
FOR UPDATE

-- name: reconcile_soon
UPDATE channel_history
SET reconcile_at = least(
    reconcile_at,
    greatest(
        coalesce(%(now)s::timestamptz, now()),
        reconciled_at + make_interval(mins => %(minutes)s)
    )
)
WHERE workspace_id = %(workspace_id)s
    AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
    AND state = 'complete'
    AND open_pass = ''

-- name: take_up
INSERT INTO channel_history AS h (workspace_id, channel_id, begins_at, next_at)
VALUES (
    %(workspace_id)s, %(channel_id)s, %(begins_at)s, coalesce(%(now)s::timestamptz, now())
)
ON CONFLICT (workspace_id, channel_id) DO UPDATE
SET begins_at = coalesce(excluded.begins_at, h.begins_at),
    state = CASE WHEN h.state = 'left' THEN 'waiting' ELSE h.state END,
    completed_at = CASE WHEN h.state = 'left' THEN NULL ELSE h.completed_at END,
    attempts = CASE WHEN h.state IN ('left', 'failed') THEN 0 ELSE h.attempts END,
    next_at = CASE WHEN h.state IN ('left', 'failed') THEN excluded.next_at ELSE h.next_at END

-- name: hold
SELECT h.channel_id
FROM channel_history AS h
WHERE h.workspace_id = %(workspace_id)s
    AND h.channel_id = %(channel_id)s
    AND h.state <> 'left'
    AND h.pass_number = %(pass_number)s
    AND h.open_pass = %(open_pass)s
    AND h.cursor = %(cursor)s
    AND h.read_down_to_ts = %(read_down_to_ts)s
    AND NOT EXISTS (
        SELECT FROM purge_reports AS p
        WHERE p.workspace_id = h.workspace_id
            AND p.channel_id IN ('', h.channel_id)
            AND p.finished_at IS NULL
    )
FOR UPDATE

-- name: move
UPDATE channel_history
SET cursor = %(next_cursor)s,
    state = CASE WHEN state = 'complete' THEN state ELSE 'reading' END,
    -- Without a cursor the next page is asked for by ts.
    latest_ts = CASE WHEN %(next_cursor)s = '' THEN %(down_to_ts)s ELSE latest_ts END,
    read_down_to_ts = %(down_to_ts)s,
    pages_read = pages_read + 1,
    messages_read = messages_read + %(messages)s,
    first_pass_pages = first_pass_pages + CASE WHEN completed_at IS NULL THEN 1 ELSE 0 END,
    read_at = coalesce(%(now)s::timestamptz, now()),
    next_at = coalesce(%(now)s::timestamptz, now()),
    attempts = 0,
    last_error = '',
    failed_at = NULL
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: end_pass
UPDATE channel_history
SET state = 'complete',
    open_pass = '',
    cursor = '',
    looked_at = pass_began_at,
    completed_at = coalesce(%(now)s::timestamptz, now()),
    reconciled_at = coalesce(%(now)s::timestamptz, now()),
    reconcile_at = coalesce(%(now)s::timestamptz, now()) + make_interval(hours => %(hours)s)
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: forget_cursor
UPDATE channel_history
SET cursor = '', latest_ts = coalesce(nullif(read_down_to_ts, ''), latest_ts)
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: fail
UPDATE channel_history
SET state = CASE WHEN %(has_failed)s AND state <> 'complete' THEN 'failed' ELSE state END,
    attempts = %(attempts)s,
    next_at = coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(delay_seconds)s),
    read_at = coalesce(%(now)s::timestamptz, now()),
    last_error = %(error)s,
    failed_at = coalesce(%(now)s::timestamptz, now())
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: let_others_go_first
UPDATE channel_history
SET read_at = coalesce(%(now)s::timestamptz, now())
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: leave
UPDATE channel_history
SET state = 'left',
    open_pass = '',
    cursor = '',
    last_error = %(error)s,
    failed_at = coalesce(%(now)s::timestamptz, now())
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: stop_all
UPDATE channel_history
SET state = CASE WHEN state IN ('waiting', 'reading') THEN 'failed' ELSE state END,
    next_at = 'infinity',
    last_error = %(error)s,
    failed_at = coalesce(%(now)s::timestamptz, now())
WHERE workspace_id = %(workspace_id)s AND state <> 'left'

-- name: resume_all
UPDATE channel_history
SET next_at = coalesce(%(now)s::timestamptz, now()), attempts = 0, last_error = '', failed_at = NULL
WHERE workspace_id = %(workspace_id)s AND next_at = 'infinity'
