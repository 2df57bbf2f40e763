-- name: read_people
SELECT person_id, display_name, real_name, handle, team_id, is_bot, is_deactivated, in_directory
FROM people
WHERE workspace_id = %(workspace_id)s

-- name: save_people
INSERT INTO people (
    workspace_id, person_id, display_name, real_name, handle, team_id, is_bot, is_deactivated,
    in_directory
)
VALUES (
    %(workspace_id)s, %(person_id)s, %(display_name)s, %(real_name)s, %(handle)s, %(team_id)s,
    %(is_bot)s, %(is_deactivated)s, true
)
ON CONFLICT (workspace_id, person_id) DO UPDATE
SET display_name = excluded.display_name,
    real_name = excluded.real_name,
    handle = excluded.handle,
    team_id = excluded.team_id,
    is_bot = excluded.is_bot,
    is_deactivated = excluded.is_deactivated,
    in_directory = true

-- name: add_guest
INSERT INTO people (workspace_id, person_id, display_name, team_id, is_bot, in_directory)
VALUES (
    %(workspace_id)s, %(person_id)s, %(display_name)s, %(team_id)s, %(is_bot)s, false
)
ON CONFLICT (workspace_id, person_id) DO NOTHING

-- name: read_channels
SELECT channel_id, name, kind, is_archived, purpose
FROM channels
WHERE workspace_id = %(workspace_id)s
ORDER BY name, channel_id

-- name: save_channels
INSERT INTO channels (workspace_id, channel_id, name, kind, is_archived, purpose)
VALUES (
    %(workspace_id)s, %(channel_id)s, %(name)s, %(kind)s, %(is_archived)s, %(purpose)s
)
ON CONFLICT (workspace_id, channel_id) DO UPDATE
SET name = excluded.name,
    kind = excluded.kind,
    is_archived = excluded.is_archived,
    purpose = excluded.purpose

-- name: add_channel
INSERT INTO channels (workspace_id, channel_id, name, kind)
VALUES (%(workspace_id)s, %(channel_id)s, %(name)s, %(kind)s)
ON CONFLICT (workspace_id, channel_id) DO NOTHING

-- name: add_members
INSERT INTO channel_members (workspace_id, channel_id, person_id)
SELECT %(workspace_id)s, %(channel_id)s, person_id
FROM unnest(%(person_ids)s::text[]) AS given (person_id)
ON CONFLICT (workspace_id, channel_id, person_id) DO NOTHING

-- name: remove_other_members
DELETE FROM channel_members
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND person_id <> ALL (%(person_ids)s::text[])

-- name: empty_channels
SELECT c.name
FROM channels AS c
WHERE c.workspace_id = %(workspace_id)s
    AND NOT EXISTS (
        SELECT FROM messages AS m
        WHERE m.workspace_id = c.workspace_id AND m.channel_id = c.channel_id
    )
ORDER BY c.name
