-- name: read_messages
-- A deletion holds from its tombstone on, before the message's row is gone.
SELECT
    m.message_id,
    m.channel_id,
    c.name,
    m.author_id,
    -- A message carries a name only where it differs from the directory's: a bot's own, a guest's.
    COALESCE(NULLIF(m.author_name, ''), NULLIF(p.display_name, ''), m.author_id),
    m.posted_at,
    m.edited_at,
    left(m.text, %(text_characters)s),
    m.thread_root_id,
    m.content_sha256,
    m.is_bot,
    w.domain,
    m.indexed_at,
    m.message_id,
    to_char(
        COALESCE(m.edited_at, m.posted_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
    ),
    m.content_sha256,
    m.indexed_at,
    NULL::date,
    NULL::date
FROM messages m
JOIN workspaces w ON w.workspace_id = m.workspace_id
JOIN channels c ON c.workspace_id = m.workspace_id AND c.channel_id = m.channel_id
LEFT JOIN people p ON p.workspace_id = m.workspace_id AND p.person_id = m.author_id
WHERE m.workspace_id = %(workspace_id)s
  AND m.message_id = ANY(%(message_ids)s)
  AND m.channel_id = ANY(%(channel_ids)s)
  AND split_part(m.message_id, ':', 1) = %(source)s
  AND NOT EXISTS (
      SELECT 1
      FROM tombstones t
      WHERE t.workspace_id = m.workspace_id AND t.message_id = m.message_id
  )

-- name: read_pieces
-- Pieces of documents, of the pinned generation or of the one that serves their collection.
SELECT
    p.message_id,
    p.channel_id,
    c.name,
    '',
    s.path,
    s.first_indexed_at,
    NULL::timestamptz,
    left(p.text, %(text_characters)s),
    first_piece.message_id,
    p.content_sha256,
    false,
    '',
    s.indexed_at,
    s.source_uri,
    s.version_id,
    s.sha256,
    s.first_indexed_at,
    s.valid_from,
    s.valid_until
FROM source_pieces p
JOIN sources s USING (workspace_id, generation_id, source_uri)
JOIN generations g USING (workspace_id, generation_id)
JOIN channels c ON c.workspace_id = p.workspace_id AND c.channel_id = p.channel_id
CROSS JOIN LATERAL (
    SELECT f.message_id
    FROM source_pieces f
    WHERE f.workspace_id = p.workspace_id
      AND f.generation_id = p.generation_id
      AND f.source_uri = p.source_uri
    ORDER BY f.ordinal
    LIMIT 1
) AS first_piece
WHERE p.workspace_id = %(workspace_id)s
  AND p.message_id = ANY(%(message_ids)s)
  AND p.channel_id = ANY(%(channel_ids)s)
  AND (
      p.generation_id = %(generation_id)s
      OR (%(generation_id)s = '' AND g.state = 'active' AND g.collection = p.channel_id)
  )

-- name: document_of
-- Every piece of a document, by any of them.
SELECT p.message_id
FROM source_pieces asked
JOIN source_pieces p USING (workspace_id, generation_id, source_uri)
JOIN generations g USING (workspace_id, generation_id)
WHERE asked.workspace_id = %(workspace_id)s
  AND asked.message_id = %(message_id)s
  AND asked.channel_id = ANY(%(channel_ids)s)
  AND g.state = 'active'
  AND g.collection = p.channel_id
ORDER BY p.ordinal
LIMIT %(limit)s

-- name: thread_of
-- The root's id finds its thread even when the root itself was deleted.
SELECT m.message_id
FROM messages m
WHERE m.workspace_id = %(workspace_id)s
  AND m.channel_id = ANY(%(channel_ids)s)
  AND m.thread_root_id = COALESCE(
      (
          SELECT asked.thread_root_id
          FROM messages asked
          WHERE asked.workspace_id = %(workspace_id)s
            AND asked.message_id = %(message_id)s
            AND asked.channel_id = ANY(%(channel_ids)s)
            AND NOT EXISTS (
                SELECT 1
                FROM tombstones t
                WHERE t.workspace_id = asked.workspace_id AND t.message_id = asked.message_id
            )
      ),
      %(message_id)s
  )
ORDER BY m.message_id <> m.thread_root_id, m.posted_at, m.message_id
LIMIT %(limit)s

-- name: timeline_forwards
SELECT m.message_id, m.posted_at
FROM messages m
WHERE m.workspace_id = %(workspace_id)s
  AND m.channel_id = ANY(%(channel_ids)s)
  AND m.posted_at >= COALESCE(%(posted_after)s::timestamptz, '-infinity')
  AND m.posted_at < COALESCE(%(posted_before)s::timestamptz, 'infinity')
  AND (%(author_ids)s::text[] IS NULL OR m.author_id = ANY(%(author_ids)s::text[]))
  AND split_part(m.message_id, ':', 1) = %(source)s
  AND (m.posted_at, m.message_id) > (
      COALESCE(%(last_posted_at)s::timestamptz, '-infinity'), %(last_message_id)s
  )
  AND NOT EXISTS (
      SELECT 1
      FROM tombstones t
      WHERE t.workspace_id = m.workspace_id AND t.message_id = m.message_id
  )
ORDER BY m.posted_at, m.message_id
LIMIT %(limit)s

-- name: timeline_backwards
SELECT m.message_id, m.posted_at
FROM messages m
WHERE m.workspace_id = %(workspace_id)s
  AND m.channel_id = ANY(%(channel_ids)s)
  AND m.posted_at >= COALESCE(%(posted_after)s::timestamptz, '-infinity')
  AND m.posted_at < COALESCE(%(posted_before)s::timestamptz, 'infinity')
  AND (%(author_ids)s::text[] IS NULL OR m.author_id = ANY(%(author_ids)s::text[]))
  AND split_part(m.message_id, ':', 1) = %(source)s
  AND (m.posted_at, m.message_id) < (
      COALESCE(%(last_posted_at)s::timestamptz, 'infinity'), %(last_message_id)s
  )
  AND NOT EXISTS (
      SELECT 1
      FROM tombstones t
      WHERE t.workspace_id = m.workspace_id AND t.message_id = m.message_id
  )
ORDER BY m.posted_at DESC, m.message_id DESC
LIMIT %(limit)s

-- name: newest_readable
-- One index probe a channel.
SELECT max(newest.posted_at)
FROM unnest(%(channel_ids)s::text[]) AS readable(channel_id)
CROSS JOIN LATERAL (
    SELECT m.posted_at
    FROM messages m
    WHERE m.workspace_id = %(workspace_id)s
      AND m.channel_id = readable.channel_id
      AND split_part(m.message_id, ':', 1) = %(source)s
      AND NOT EXISTS (
          SELECT 1
          FROM tombstones t
          WHERE t.workspace_id = m.workspace_id AND t.message_id = m.message_id
      )
    ORDER BY m.posted_at DESC
    LIMIT 1
) AS newest
