-- name: is_strict
SELECT is_strict
FROM workspaces
WHERE workspace_id = %(workspace_id)s

-- name: calibration
-- The published one of exactly this generation; else the newest, which says why there is none.
SELECT
    c.calibration_id,
    c.state,
    c.reason,
    c.model,
    c.model_sha256,
    c.pipeline_fingerprint = g.pipeline_fingerprint
        AND (g.kind = 'live' OR c.corpus_fingerprint = g.corpus_fingerprint)
FROM calibrations c
JOIN generations g
  ON g.workspace_id = c.workspace_id
 AND g.generation_id = c.generation_id
WHERE c.workspace_id = %(workspace_id)s
  AND c.generation_id = %(generation_id)s
ORDER BY c.state = 'published' DESC, c.created_at DESC, c.calibration_id DESC
LIMIT 1

-- name: corrections
-- What replaces the given messages, what replaces that, and so on; and what they replace. Only
-- replacements that the asker may read: another would tell that it exists.
WITH RECURSIVE chain(newer, older, declared_at) AS (
    SELECT c.corrected_by_id, c.message_id, c.declared_at
    FROM corrections c
    WHERE c.workspace_id = %(workspace_id)s
      AND (c.message_id = ANY(%(items)s) OR c.corrected_by_id = ANY(%(items)s))
    UNION
    SELECT c.corrected_by_id, c.message_id, c.declared_at
    FROM corrections c
    JOIN chain ON chain.newer = c.message_id
    WHERE c.workspace_id = %(workspace_id)s
)
SELECT chain.newer, chain.older, chain.declared_at, false
FROM chain
JOIN messages m
  ON m.workspace_id = %(workspace_id)s
 AND m.message_id = chain.newer
 AND m.channel_id = ANY(%(channel_ids)s)
WHERE NOT EXISTS (
    SELECT 1
    FROM tombstones t
    WHERE t.workspace_id = m.workspace_id AND t.message_id = m.message_id
)

-- name: message_items
SELECT
    m.message_id,
    COALESCE(NULLIF(m.author_name, ''), NULLIF(p.display_name, ''), m.author_id)
        || ', ' || to_char(m.posted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    m.posted_at,
    NULL::date,
    NULL::date,
    '',
    '{}'::text[]
FROM messages m
LEFT JOIN people p ON p.workspace_id = m.workspace_id AND p.person_id = m.author_id
WHERE m.workspace_id = %(workspace_id)s
  AND m.message_id = ANY(%(items)s)
  AND m.channel_id = ANY(%(channel_ids)s)

-- name: supersessions
WITH RECURSIVE chain(newer, older, asserted_at, is_ambiguous) AS (
    SELECT s.source_uri, s.superseded_uri, s.asserted_at, s.is_ambiguous
    FROM supersessions s
    WHERE s.workspace_id = %(workspace_id)s
      AND s.generation_id = %(generation_id)s
      AND (s.superseded_uri = ANY(%(items)s) OR s.source_uri = ANY(%(items)s))
    UNION
    SELECT s.source_uri, s.superseded_uri, s.asserted_at, s.is_ambiguous
    FROM supersessions s
    JOIN chain ON chain.newer = s.superseded_uri
    WHERE s.workspace_id = %(workspace_id)s
      AND s.generation_id = %(generation_id)s
)
SELECT newer, older, asserted_at, is_ambiguous
FROM chain

-- name: document_items
-- The documents and everything that they depend on, directly or not.
WITH RECURSIVE needed(source_uri) AS (
    SELECT unnest(%(items)s::text[])
    UNION
    SELECT r.target_uri
    FROM document_relations r
    JOIN needed ON needed.source_uri = r.source_uri
    WHERE r.workspace_id = %(workspace_id)s
      AND r.generation_id = %(generation_id)s
      AND r.relation = 'depends_on'
)
SELECT
    s.source_uri,
    s.path,
    s.first_indexed_at,
    s.valid_from,
    s.valid_until,
    s.invalid_metadata,
    ARRAY(
        SELECT r.target_uri
        FROM document_relations r
        WHERE r.workspace_id = s.workspace_id
          AND r.generation_id = s.generation_id
          AND r.source_uri = s.source_uri
          AND r.relation = 'depends_on'
        ORDER BY r.target_uri
    )
FROM sources s
JOIN needed USING (source_uri)
WHERE s.workspace_id = %(workspace_id)s
  AND s.generation_id = %(generation_id)s
  AND s.channel_id = ANY(%(channel_ids)s)

-- name: best_pieces
-- Of each document the piece that is nearest to the question.
SELECT DISTINCT ON (p.source_uri) p.message_id
FROM source_pieces p
JOIN chunk_messages cm
  ON cm.workspace_id = p.workspace_id
 AND cm.generation_id = p.generation_id
 AND cm.message_id = p.message_id
LEFT JOIN vectors_{width} v
  ON v.workspace_id = cm.workspace_id
 AND v.generation_id = cm.generation_id
 AND v.chunk_id = cm.chunk_id
WHERE p.workspace_id = %(workspace_id)s
  AND p.generation_id = %(generation_id)s
  AND p.source_uri = ANY(%(items)s)
  AND p.channel_id = ANY(%(channel_ids)s)
ORDER BY p.source_uri, v.embedding <=> %(question)s::vector, p.ordinal
