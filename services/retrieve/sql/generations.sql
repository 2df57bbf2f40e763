-- name: serving_generation
SELECT g.generation_id, g.embedder_fingerprint, g.width, e.model
FROM generations g
JOIN embedders e ON e.fingerprint = g.embedder_fingerprint
WHERE g.workspace_id = %(workspace_id)s
  AND g.source = %(source)s
  AND g.collection = %(collection)s
  AND g.state = 'active'

-- name: pinned_generation
SELECT g.generation_id, g.embedder_fingerprint, g.width, e.model
FROM generations g
JOIN embedders e ON e.fingerprint = g.embedder_fingerprint
WHERE g.workspace_id = %(workspace_id)s
  AND g.source = %(source)s
  AND (g.collection = '' OR g.collection = ANY(%(channel_ids)s))
  AND g.generation_id = %(generation_id)s
  AND (
      g.state = 'active'
      OR (
          g.state = 'ready'
          AND g.superseded_at > now() - make_interval(mins => %(grace_minutes)s)
      )
      OR (%(may_be_unserved)s AND g.state IN ('validating', 'ready'))
  )

-- name: workspace_exists
SELECT 1
FROM workspaces
WHERE workspace_id = %(workspace_id)s
