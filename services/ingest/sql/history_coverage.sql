-- name: channel_histories
SELECT
    h.channel_id,
    h.state,
    CASE WHEN h.completed_at IS NULL THEN h.read_down_to_ts ELSE '' END,
    h.completed_at,
    coalesce(nullif(h.last_error, ''), t.last_error, ''),
    coalesce(t.waiting, 0),
    coalesce(t.failed, 0)
FROM channel_history AS h
LEFT JOIN (
    SELECT
        channel_id,
        count(*) FILTER (WHERE state = 'waiting') AS waiting,
        count(*) FILTER (WHERE state = 'failed') AS failed,
        max(last_error) AS last_error
    FROM thread_history
    WHERE workspace_id = %(workspace_id)s AND state <> 'complete'
    GROUP BY channel_id
) AS t ON t.channel_id = h.channel_id
WHERE h.workspace_id = %(workspace_id)s

-- name: unread
SELECT
    h.first_pass_pages,
    (extract(epoch FROM now()) - nullif(h.read_down_to_ts, '')::numeric)::float8,
    (
        nullif(h.read_down_to_ts, '')::numeric
        - greatest(extract(epoch FROM h.begins_at), nullif(h.oldest_ts, '')::numeric)
    )::float8
FROM channel_history AS h
WHERE h.workspace_id = %(workspace_id)s AND h.completed_at IS NULL AND h.state <> 'left'

-- name: totals
-- Of a thread a call a page, and one for a thread without replies.
SELECT
    coalesce(bool_or(h.next_at = 'infinity'), false),
    coalesce(sum(h.first_pass_pages), 0)::bigint,
    coalesce(sum(t.waiting), 0)::bigint,
    coalesce(sum(t.every), 0)::bigint
FROM channel_history AS h
LEFT JOIN (
    SELECT
        channel_id,
        sum(pages) FILTER (WHERE state <> 'complete') AS waiting,
        sum(pages) AS every
    FROM (
        SELECT
            channel_id,
            state,
            greatest(1, ceil(reply_count / %(page_size)s::numeric)) AS pages
        FROM thread_history
        WHERE workspace_id = %(workspace_id)s
    ) AS threads
    GROUP BY channel_id
) AS t ON t.channel_id = h.channel_id
WHERE h.workspace_id = %(workspace_id)s AND h.state <> 'left'
