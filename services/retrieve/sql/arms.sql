-- name: dense_arm
-- "+ 0" keeps an approximate index out of this ordering: the arm is exact whatever is indexed.
SELECT chunk_id, (embedding <=> %(question)s::vector) + 0 AS distance
FROM vectors_{width}
WHERE workspace_id = %(workspace_id)s
  AND generation_id = %(generation_id)s
  AND channel_id = ANY(%(channel_ids)s)
  AND embedding IS NOT NULL
  AND posted_until >= COALESCE(%(posted_after)s::timestamptz, '-infinity')
  AND posted_from < COALESCE(%(posted_before)s::timestamptz, 'infinity')
  AND (%(author_ids)s::text[] IS NULL OR author_ids && %(author_ids)s::text[])
ORDER BY distance, posted_until DESC, chunk_id
LIMIT %(candidates)s

-- name: lexical_arm
SELECT chunk_id, ts_rank(terms, to_tsquery('simple', %(lexical_query)s)) AS rank
FROM chunk_terms
WHERE workspace_id = %(workspace_id)s
  AND generation_id = %(generation_id)s
  AND channel_id = ANY(%(channel_ids)s)
  AND terms @@ to_tsquery('simple', %(lexical_query)s)
  AND posted_until >= COALESCE(%(posted_after)s::timestamptz, '-infinity')
  AND posted_from < COALESCE(%(posted_before)s::timestamptz, 'infinity')
  AND (%(author_ids)s::text[] IS NULL OR author_ids && %(author_ids)s::text[])
ORDER BY rank DESC, posted_until DESC, chunk_id
LIMIT %(candidates)s

-- name: contained_messages
-- A deletion holds from its tombstone on, before the message's row is gone.
SELECT cm.chunk_id, c.kind, m.message_id, m.posted_at
FROM chunk_messages cm
JOIN chunks c
  ON c.workspace_id = cm.workspace_id
 AND c.generation_id = cm.generation_id
 AND c.chunk_id = cm.chunk_id
JOIN messages m
  ON m.workspace_id = cm.workspace_id
 AND m.message_id = cm.message_id
WHERE cm.workspace_id = %(workspace_id)s
  AND cm.generation_id = %(generation_id)s
  AND cm.chunk_id = ANY(%(chunk_ids)s)
  AND m.channel_id = ANY(%(channel_ids)s)
  AND m.posted_at >= COALESCE(%(posted_after)s::timestamptz, '-infinity')
  AND m.posted_at < COALESCE(%(posted_before)s::timestamptz, 'infinity')
  AND (%(author_ids)s::text[] IS NULL OR m.author_id = ANY(%(author_ids)s::text[]))
  AND NOT EXISTS (
      SELECT 1
      FROM tombstones t
      WHERE t.workspace_id = m.workspace_id AND t.message_id = m.message_id
  )
ORDER BY cm.chunk_id, cm.position

-- name: contained_pieces
-- A chunk of a document holds one piece of it.
SELECT cm.chunk_id, c.kind, p.message_id, s.first_indexed_at
FROM chunk_messages cm
JOIN chunks c
  ON c.workspace_id = cm.workspace_id
 AND c.generation_id = cm.generation_id
 AND c.chunk_id = cm.chunk_id
JOIN source_pieces p
  ON p.workspace_id = cm.workspace_id
 AND p.generation_id = cm.generation_id
 AND p.message_id = cm.message_id
JOIN sources s
  ON s.workspace_id = p.workspace_id
 AND s.generation_id = p.generation_id
 AND s.source_uri = p.source_uri
WHERE cm.workspace_id = %(workspace_id)s
  AND cm.generation_id = %(generation_id)s
  AND cm.chunk_id = ANY(%(chunk_ids)s)
  AND p.channel_id = ANY(%(channel_ids)s)
  AND s.first_indexed_at >= COALESCE(%(posted_after)s::timestamptz, '-infinity')
  AND s.first_indexed_at < COALESCE(%(posted_before)s::timestamptz, 'infinity')
ORDER BY cm.chunk_id, cm.position

-- name: vectors_missing
SELECT EXISTS (
    SELECT 1
    FROM vectors_{width}
    WHERE workspace_id = %(workspace_id)s
      AND generation_id = %(generation_id)s
      AND channel_id = ANY(%(channel_ids)s)
      AND embedding IS NULL
      AND skipped IS NULL
)
