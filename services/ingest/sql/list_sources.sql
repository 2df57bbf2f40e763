-- name: serving_collection
SELECT generation_id
FROM generations
WHERE workspace_id = %(workspace_id)s
    AND source = 'document'
    AND collection = %(collection)s
    AND state = 'active'

-- name: serving_sources
SELECT s.source_uri, s.path, s.version_id, s.media_type, s.size, s.sha256
FROM sources AS s
INNER JOIN generations AS g
    ON g.workspace_id = s.workspace_id AND g.generation_id = s.generation_id
WHERE s.workspace_id = %(workspace_id)s
    AND g.source = 'document'
    AND g.collection = %(collection)s
    AND g.state = 'active'
ORDER BY s.source_uri
