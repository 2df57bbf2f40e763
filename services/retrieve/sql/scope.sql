-- name: channels_named
SELECT channel_id
FROM channels
WHERE workspace_id = %(workspace_id)s
  AND channel_id = ANY(%(channel_ids)s)
  AND (
      channel_id = %(name)s
      OR (name <> '' AND lower(name) = lower(%(name)s))
  )
ORDER BY channel_id

-- name: people_named
-- Only authors of a readable message count: a person who writes elsewhere is not told from one
-- who does not exist. The most exact kind of match wins; namesakes of one kind are all meant.
WITH named AS (
    SELECT
        person_id,
        CASE
            WHEN lower(person_id) = lower(%(name)s) THEN 1
            WHEN lower(handle) = lower(%(name)s) THEN 2
            WHEN lower(display_name) = lower(%(name)s) THEN 3
            WHEN lower(real_name) = lower(%(name)s) THEN 4
            WHEN lower(split_part(display_name, ' ', 1)) = lower(%(name)s) THEN 5
            WHEN lower(split_part(real_name, ' ', 1)) = lower(%(name)s) THEN 5
        END AS exactness
    FROM people
    WHERE workspace_id = %(workspace_id)s
),
readable AS (
    SELECT n.person_id, n.exactness
    FROM named n
    WHERE n.exactness IS NOT NULL
      AND EXISTS (
          SELECT 1
          FROM messages m
          WHERE m.workspace_id = %(workspace_id)s
            AND m.author_id = n.person_id
            AND m.channel_id = ANY(%(channel_ids)s)
      )
)
SELECT person_id
FROM readable
WHERE exactness = (SELECT min(exactness) FROM readable)
ORDER BY person_id

-- name: authors_named
-- Authors that no directory lists, by the name their own messages carry.
SELECT DISTINCT author_id
FROM messages
WHERE workspace_id = %(workspace_id)s
  AND channel_id = ANY(%(channel_ids)s)
  AND author_id <> ''
  AND (lower(author_id) = lower(%(name)s) OR lower(author_name) = lower(%(name)s))
ORDER BY author_id
