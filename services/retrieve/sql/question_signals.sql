-- name: stems
SELECT w.word, COALESCE((ts_lexize('english_stem', w.word))[1], w.word)
FROM unnest(%(words)s::text[]) AS w(word)

-- name: people_with_name
-- People who wrote something readable, by a word of the question: a whole name says more than a
-- first name.
SELECT p.person_id, p.display_name, p.real_name
FROM people p
WHERE p.workspace_id = %(workspace_id)s
  AND (
      lower(p.handle) = ANY(%(names)s)
      OR lower(split_part(p.display_name, ' ', 1)) = ANY(%(names)s)
      OR lower(split_part(p.real_name, ' ', 1)) = ANY(%(names)s)
  )
  AND EXISTS (
      SELECT 1
      FROM messages m
      WHERE m.workspace_id = p.workspace_id
        AND m.author_id = p.person_id
        AND m.channel_id = ANY(%(channel_ids)s)
  )

-- name: authors_with_name
-- Authors that no directory lists are named by their id.
SELECT DISTINCT m.author_id
FROM messages m
WHERE m.workspace_id = %(workspace_id)s
  AND m.channel_id = ANY(%(channel_ids)s)
  AND m.author_id = ANY(%(written_names)s)

-- name: author_coverage
-- How much of the question's wording stands in one message by the person it names, against one by
-- anybody else, over all that the asker may read.
WITH asked AS (
    SELECT to_tsquery('simple', a.query) AS query, a.weight
    FROM unnest(%(queries)s::text[], %(weights)s::float8[]) AS a(query, weight)
),
covered AS (
    SELECT ct.chunk_id, ct.author_ids && %(named)s::text[] AS is_by_named, sum(a.weight) AS weight
    FROM asked a
    JOIN chunk_terms ct
      ON ct.workspace_id = %(workspace_id)s
     AND ct.generation_id = %(generation_id)s
     AND ct.channel_id = ANY(%(channel_ids)s)
     AND ct.terms @@ a.query
    JOIN chunks c
      ON c.workspace_id = ct.workspace_id
     AND c.generation_id = ct.generation_id
     AND c.chunk_id = ct.chunk_id
    WHERE split_part(c.kind, '/', 1) = 'message'
    GROUP BY ct.chunk_id, ct.author_ids
)
SELECT
    COALESCE(max(weight) FILTER (WHERE is_by_named), 0),
    COALESCE(max(weight) FILTER (WHERE NOT is_by_named), 0)
FROM covered
