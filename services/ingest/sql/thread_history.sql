-- name: next_thread
SELECT t.channel_id, t.root_ts, t.cursor, t.oldest_ts, t.read_up_to_ts, t.is_again, t.attempts
FROM thread_history AS t
INNER JOIN channel_history AS h
    ON h.workspace_id = t.workspace_id AND h.channel_id = t.channel_id
WHERE t.workspace_id = %(workspace_id)s
    AND t.state <> 'complete'
    AND t.next_at <= coalesce(%(now)s::timestamptz, now())
    AND h.state <> 'left'
    AND h.next_at < 'infinity'
    AND NOT EXISTS (
        SELECT FROM purge_reports AS p
        WHERE p.workspace_id = t.workspace_id
            AND p.channel_id IN ('', t.channel_id)
            AND p.finished_at IS NULL
    )
ORDER BY t.read_at NULLS FIRST, t.root_ts DESC
LIMIT 1

-- name: seconds_to_next
-- Channels at rest are due by their reconciliation, and somebody asks for that. One that is being
-- purged is not due again.
SELECT extract(epoch FROM min(due.next_at) - coalesce(%(now)s::timestamptz, now()))::float8
FROM (
    SELECT h.channel_id, h.next_at
    FROM channel_history AS h
    WHERE h.workspace_id = %(workspace_id)s
        AND h.next_at < 'infinity'
        AND (
            h.state IN ('waiting', 'reading', 'failed')
            OR (h.state = 'complete' AND h.open_pass <> '')
        )
    UNION ALL
    SELECT t.channel_id, t.next_at
    FROM thread_history AS t
    INNER JOIN channel_history AS h
        ON h.workspace_id = t.workspace_id AND h.channel_id = t.channel_id
    WHERE t.workspace_id = %(workspace_id)s
        AND t.state <> 'complete'
        AND h.state <> 'left'
        AND h.next_at < 'infinity'
) AS due
WHERE NOT EXISTS (
    SELECT FROM purge_reports AS p
    WHERE p.workspace_id = %(workspace_id)s
        AND p.channel_id IN ('', due.channel_id)
        AND p.finished_at IS NULL
)

-- name: expect
-- A thread that is being read stays where it is: its end holds the new replies too.
INSERT INTO thread_history AS t (
    workspace_id, channel_id, root_ts, state, reply_count, latest_reply_ts, is_again, next_at
)
SELECT
    %(workspace_id)s,
    %(channel_id)s,
    told.root_ts,
    CASE
        WHEN
            NOT %(everything)s
            AND told.reply_count = stored.replies
            AND told.latest_reply_ts = stored.latest_ts
            THEN 'complete'
        ELSE 'waiting'
    END,
    told.reply_count,
    told.latest_reply_ts,
    %(again)s,
    coalesce(%(now)s::timestamptz, now())
FROM unnest(
    %(root_ts)s::text[], %(reply_counts)s::integer[], %(latest_replies)s::text[]
) AS told (root_ts, reply_count, latest_reply_ts)
CROSS JOIN LATERAL (
    SELECT count(*) AS replies, coalesce(max(m.ts), '') AS latest_ts
    FROM messages AS m
    WHERE m.workspace_id = %(workspace_id)s
        AND m.thread_root_id = %(id_prefix)s || told.root_ts
        AND m.message_id <> m.thread_root_id
) AS stored
WHERE told.reply_count > 0 OR (%(again)s AND stored.replies > 0)
ON CONFLICT (workspace_id, channel_id, root_ts) DO UPDATE
SET state = CASE WHEN t.state = 'complete' THEN excluded.state ELSE t.state END,
    reply_count = excluded.reply_count,
    latest_reply_ts = excluded.latest_reply_ts,
    cursor = CASE WHEN t.state = 'complete' THEN '' ELSE t.cursor END,
    oldest_ts = CASE WHEN t.state = 'complete' THEN '' ELSE t.oldest_ts END,
    read_up_to_ts = CASE WHEN t.state = 'complete' THEN '' ELSE t.read_up_to_ts END,
    is_again = CASE WHEN t.state = 'complete' THEN excluded.is_again ELSE t.is_again END,
    read_at = CASE WHEN t.state = 'complete' THEN NULL ELSE t.read_at END,
    attempts = CASE WHEN t.state = 'complete' THEN 0 ELSE t.attempts END,
    next_at = CASE WHEN t.state = 'complete' THEN excluded.next_at ELSE t.next_at END
WHERE %(everything)s
    OR (t.reply_count, t.latest_reply_ts)
    IS DISTINCT FROM (excluded.reply_count, excluded.latest_reply_ts)

-- name: hold
SELECT t.root_ts
FROM thread_history AS t
INNER JOIN channel_history AS h
    ON h.workspace_id = t.workspace_id AND h.channel_id = t.channel_id
WHERE t.workspace_id = %(workspace_id)s
    AND t.channel_id = %(channel_id)s
    AND t.root_ts = %(root_ts)s
    AND t.state <> 'complete'
    AND t.cursor = %(cursor)s
    AND t.read_up_to_ts = %(read_up_to_ts)s
    AND h.state <> 'left'
    AND NOT EXISTS (
        SELECT FROM purge_reports AS p
        WHERE p.workspace_id = t.workspace_id
            AND p.channel_id IN ('', t.channel_id)
            AND p.finished_at IS NULL
    )
FOR UPDATE OF t

-- name: move
UPDATE thread_history
SET state = 'waiting',
    cursor = %(next_cursor)s,
    -- Without a cursor the next page is asked for by ts.
    oldest_ts = CASE WHEN %(next_cursor)s = '' THEN %(up_to_ts)s ELSE oldest_ts END,
    read_up_to_ts = %(up_to_ts)s,
    read_at = coalesce(%(now)s::timestamptz, now()),
    next_at = coalesce(%(now)s::timestamptz, now()),
    attempts = 0,
    last_error = ''
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND root_ts = %(root_ts)s

-- name: end
UPDATE thread_history
SET state = 'complete',
    cursor = '',
    read_at = coalesce(%(now)s::timestamptz, now()),
    attempts = 0,
    last_error = ''
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND root_ts = %(root_ts)s

-- name: forget_cursor
UPDATE thread_history
SET cursor = '', oldest_ts = read_up_to_ts
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND root_ts = %(root_ts)s

-- name: fail
UPDATE thread_history
SET state = CASE WHEN %(has_failed)s THEN 'failed' ELSE state END,
    attempts = %(attempts)s,
    next_at = coalesce(%(now)s::timestamptz, now()) + make_interval(secs => %(delay_seconds)s),
    read_at = coalesce(%(now)s::timestamptz, now()),
    last_error = %(error)s
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND root_ts = %(root_ts)s

-- name: let_others_go_first
UPDATE thread_history
SET read_at = coalesce(%(now)s::timestamptz, now())
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND root_ts = %(root_ts)s
