-- name: read_stored
SELECT
    message_id, channel_id, ts, author_id, author_name, is_bot, posted_at, edited_at, edited_ts,
    thread_root_id, content_sha256
FROM messages
WHERE workspace_id = %(workspace_id)s AND message_id = ANY (%(message_ids)s::text[])

-- name: read_tombstones
SELECT message_id
FROM tombstones
WHERE workspace_id = %(workspace_id)s AND message_id = ANY (%(message_ids)s::text[])

-- name: save_message
INSERT INTO messages (
    workspace_id, message_id, channel_id, ts, author_id, author_name, is_bot, posted_at,
    edited_at, edited_ts, thread_root_id, text, content_sha256
)
VALUES (
    %(workspace_id)s, %(message_id)s, %(channel_id)s, %(ts)s, %(author_id)s, %(author_name)s,
    %(is_bot)s, %(posted_at)s, %(edited_at)s, %(edited_ts)s, %(thread_root_id)s, %(text)s,
    %(content_sha256)s
)
ON CONFLICT (workspace_id, message_id) DO UPDATE
SET channel_id = excluded.channel_id,
    ts = excluded.ts,
    author_id = excluded.author_id,
    author_name = excluded.author_name,
    is_bot = excluded.is_bot,
    posted_at = excluded.posted_at,
    edited_at = excluded.edited_at,
    edited_ts = excluded.edited_ts,
    thread_root_id = excluded.thread_root_id,
    text = excluded.text,
    content_sha256 = excluded.content_sha256,
    indexed_at = now()

-- name: bury
INSERT INTO tombstones (workspace_id, message_id)
SELECT %(workspace_id)s, message_id
FROM unnest(%(message_ids)s::text[]) AS given (message_id)
ON CONFLICT (workspace_id, message_id) DO NOTHING
RETURNING message_id

-- name: remove_messages
DELETE FROM messages
WHERE workspace_id = %(workspace_id)s AND message_id = ANY (%(message_ids)s::text[])
RETURNING thread_root_id

-- name: some_bot_messages
SELECT message_id
FROM messages
WHERE workspace_id = %(workspace_id)s AND is_bot
LIMIT %(limit)s

-- name: read_threads
-- A message carries an author's name only where it differs from the directory's.
SELECT
    m.message_id,
    m.channel_id,
    c.name,
    m.author_id,
    coalesce(nullif(m.author_name, ''), p.display_name, m.author_id),
    m.posted_at,
    m.text,
    m.thread_root_id
FROM messages AS m
INNER JOIN channels AS c ON c.workspace_id = m.workspace_id AND c.channel_id = m.channel_id
LEFT JOIN people AS p ON p.workspace_id = m.workspace_id AND p.person_id = m.author_id
WHERE m.workspace_id = %(workspace_id)s AND m.thread_root_id = ANY (%(thread_root_ids)s::text[])

-- name: next_threads
SELECT DISTINCT thread_root_id
FROM messages
WHERE workspace_id = %(workspace_id)s AND thread_root_id > %(after)s
ORDER BY thread_root_id
LIMIT %(limit)s

-- name: coverage
SELECT c.channel_id, c.name, count(m.message_id), min(m.posted_at), max(m.posted_at)
FROM channels AS c
LEFT JOIN messages AS m ON m.workspace_id = c.workspace_id AND m.channel_id = c.channel_id
WHERE c.workspace_id = %(workspace_id)s
GROUP BY c.channel_id, c.name
ORDER BY c.name, c.channel_id
