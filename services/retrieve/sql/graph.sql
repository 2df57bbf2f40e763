-- name: neighbours
-- Relations in both directions; of each neighbour its piece nearest to the question.
WITH tied AS (
    SELECT r.target_uri AS source_uri, r.confidence
    FROM document_relations r
    WHERE r.workspace_id = %(workspace_id)s
      AND r.generation_id = %(generation_id)s
      AND r.source_uri = ANY(%(seeds)s)
    UNION ALL
    SELECT r.source_uri, r.confidence
    FROM document_relations r
    WHERE r.workspace_id = %(workspace_id)s
      AND r.generation_id = %(generation_id)s
      AND r.target_uri = ANY(%(seeds)s)
),
best AS (
    SELECT source_uri, max(confidence) AS confidence
    FROM tied
    WHERE source_uri <> ALL(%(seeds)s)
    GROUP BY source_uri
),
pieces AS (
    SELECT DISTINCT ON (p.source_uri) p.message_id, best.confidence
    FROM best
    JOIN source_pieces p
      ON p.workspace_id = %(workspace_id)s
     AND p.generation_id = %(generation_id)s
     AND p.source_uri = best.source_uri
     AND p.channel_id = ANY(%(channel_ids)s)
    JOIN chunk_messages cm
      ON cm.workspace_id = p.workspace_id
     AND cm.generation_id = p.generation_id
     AND cm.message_id = p.message_id
    LEFT JOIN vectors_{width} v
      ON v.workspace_id = cm.workspace_id
     AND v.generation_id = cm.generation_id
     AND v.chunk_id = cm.chunk_id
    ORDER BY p.source_uri, v.embedding <=> %(question)s::vector, p.ordinal
)
SELECT message_id
FROM pieces
ORDER BY confidence DESC, message_id
LIMIT %(limit)s
