-- name: lock_workspace
SELECT pg_advisory_xact_lock(hashtextextended('recall.ingest ' || %(workspace_id)s, 0))

-- name: read_workspace
SELECT workspace_id, source, team_id, index_bots
FROM workspaces
WHERE workspace_id = %(workspace_id)s

-- name: create_workspace
INSERT INTO workspaces (workspace_id, source, team_id)
VALUES (%(workspace_id)s, %(source)s, %(team_id)s)
ON CONFLICT (workspace_id) DO NOTHING

-- name: set_index_bots
UPDATE workspaces
SET index_bots = %(index_bots)s
WHERE workspace_id = %(workspace_id)s AND index_bots <> %(index_bots)s

-- name: list_workspaces
SELECT workspace_id, source, team_id, index_bots
FROM workspaces
ORDER BY workspace_id

-- name: workspaces_of_team
SELECT workspace_id
FROM workspaces
WHERE source = 'slack' AND team_id = %(team_id)s
ORDER BY workspace_id
