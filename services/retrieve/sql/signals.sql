-- name: own_cosines
-- A split message has several own chunks; the nearest counts.
SELECT cm.message_id, max(1 - (v.embedding <=> %(question)s::vector))
FROM chunk_messages cm
JOIN chunks c
  ON c.workspace_id = cm.workspace_id
 AND c.generation_id = cm.generation_id
 AND c.chunk_id = cm.chunk_id
JOIN vectors_{width} v
  ON v.workspace_id = cm.workspace_id
 AND v.generation_id = cm.generation_id
 AND v.chunk_id = cm.chunk_id
WHERE cm.workspace_id = %(workspace_id)s
  AND cm.generation_id = %(generation_id)s
  AND cm.message_id = ANY(%(message_ids)s)
  AND split_part(c.kind, '/', 1) = 'message'
  AND v.embedding IS NOT NULL
GROUP BY cm.message_id

-- name: own_words
SELECT DISTINCT cm.message_id, w.word
FROM unnest(%(words)s::text[]) AS w(word)
CROSS JOIN chunk_messages cm
JOIN chunks c
  ON c.workspace_id = cm.workspace_id
 AND c.generation_id = cm.generation_id
 AND c.chunk_id = cm.chunk_id
JOIN chunk_terms ct
  ON ct.workspace_id = cm.workspace_id
 AND ct.generation_id = cm.generation_id
 AND ct.chunk_id = cm.chunk_id
WHERE cm.workspace_id = %(workspace_id)s
  AND cm.generation_id = %(generation_id)s
  AND cm.message_id = ANY(%(message_ids)s)
  AND split_part(c.kind, '/', 1) = 'message'
  AND ct.terms @@ to_tsquery('simple', w.word)

-- name: chunks_with_words
-- Over what the asker may read: rare elsewhere says nothing, and must say nothing.
SELECT w.word, (
    SELECT count(*)
    FROM chunk_terms ct
    WHERE ct.workspace_id = %(workspace_id)s
      AND ct.generation_id = %(generation_id)s
      AND ct.channel_id = ANY(%(channel_ids)s)
      AND ct.terms @@ to_tsquery('simple', w.word)
)
FROM unnest(%(words)s::text[]) AS w(word)

-- name: readable_chunks
SELECT count(*)
FROM chunk_terms
WHERE workspace_id = %(workspace_id)s
  AND generation_id = %(generation_id)s
  AND channel_id = ANY(%(channel_ids)s)
