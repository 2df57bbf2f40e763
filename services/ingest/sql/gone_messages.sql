-- name: gone_from_channel
SELECT message_id, ts
FROM messages
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND thread_root_id = message_id
    AND ts <> ''
    AND ts <> ALL (%(shown)s::text[])
    AND posted_at < %(below)s
    AND (%(above)s::timestamptz IS NULL OR posted_at > %(above)s::timestamptz)

-- name: gone_from_thread
SELECT message_id
FROM messages
WHERE workspace_id = %(workspace_id)s
    AND thread_root_id = %(root_id)s
    AND message_id <> %(root_id)s
    AND ts <> ''
    AND ts <> ALL (%(shown)s::text[])
    AND posted_at < %(below)s
    AND (%(above)s::timestamptz IS NULL OR posted_at > %(above)s::timestamptz)
