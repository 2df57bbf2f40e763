-- name: installation_of_team
-- A workspace's own installation before its organisation's. As the queue role: across tenants.
SELECT i.workspace_id, w.team_id, i.bot_user_id
FROM installations AS i
INNER JOIN workspaces AS w ON w.workspace_id = i.workspace_id
WHERE (i.team_id <> '' AND i.team_id = %(team_id)s)
    OR (
        i.is_enterprise_install
        AND i.enterprise_id <> ''
        AND i.enterprise_id = %(enterprise_id)s
    )
ORDER BY i.is_enterprise_install, i.installed_at DESC
LIMIT 1

-- name: hold_installation
-- Whoever removes the installation waits until this transaction has ended.
SELECT bot_user_id, bot_id
FROM installations
WHERE workspace_id = %(workspace_id)s
LIMIT 1
FOR KEY SHARE

-- name: was_installed_after
-- Whether an installation was made in a later second than the one that Slack names.
SELECT
    coalesce(
        bool_or(date_trunc('second', installed_at) > to_timestamp(%(event_time)s::float8)), false
    )
FROM installations
WHERE workspace_id = %(workspace_id)s

-- name: read_bot
SELECT bot_user_id, bot_id
FROM installations
WHERE workspace_id = %(workspace_id)s
LIMIT 1

-- name: read_channel
SELECT channel_id, name, kind, is_archived, purpose
FROM channels
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: mentioned_people
SELECT person_id, display_name, real_name, handle, team_id, is_bot, is_deactivated, in_directory
FROM people
WHERE workspace_id = %(workspace_id)s AND person_id = ANY (%(ids)s::text[])

-- name: mentioned_channels
SELECT channel_id, name, kind, is_archived, purpose
FROM channels
WHERE workspace_id = %(workspace_id)s AND channel_id = ANY (%(ids)s::text[])

-- name: set_archived
UPDATE channels
SET is_archived = %(is_archived)s, archived_ts = %(ts)s
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND coalesce(nullif(archived_ts, '')::numeric, 0)
        <= coalesce(nullif(%(ts)s, '')::numeric, 'infinity')

-- name: take_name
-- No row when a newer event has named the channel. One without a ts is taken for the newest.
UPDATE channels
SET named_ts = %(ts)s
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND coalesce(nullif(named_ts, '')::numeric, 0)
        <= coalesce(nullif(%(ts)s, '')::numeric, 'infinity')
RETURNING channel_id

-- name: set_shared
UPDATE channels
SET is_shared = %(is_shared)s
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: set_kind
UPDATE channels
SET kind = %(kind)s
WHERE workspace_id = %(workspace_id)s AND channel_id = %(channel_id)s

-- name: add_member
INSERT INTO channel_members (workspace_id, channel_id, person_id, joined_ts)
VALUES (%(workspace_id)s, %(channel_id)s, %(person_id)s, %(ts)s)
ON CONFLICT (workspace_id, channel_id, person_id) DO UPDATE
SET joined_ts = excluded.joined_ts
WHERE coalesce(nullif(channel_members.joined_ts, '')::numeric, 0)
    < coalesce(nullif(excluded.joined_ts, '')::numeric, 0)

-- name: remove_member
-- Not one who joined again after the leaving that is told of.
DELETE FROM channel_members
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND person_id = %(person_id)s
    AND coalesce(nullif(joined_ts, '')::numeric, 0)
        <= coalesce(nullif(%(ts)s, '')::numeric, 'infinity')

-- name: is_member
SELECT person_id
FROM channel_members
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(channel_id)s
    AND person_id = %(person_id)s

-- name: tell_membership
SELECT pg_notify(
    'recall_membership',
    json_build_object(
        'workspace_id', %(workspace_id)s::text, 'person_id', %(person_id)s::text
    )::text
)

-- name: kept_after
-- Of each channel the ts of the newest message that may not be stored; null when every message may.
SELECT
    given.channel_id,
    round(
        greatest(
            (
                SELECT extract(epoch FROM now() - make_interval(days => w.retention_days))::numeric
                FROM workspaces AS w
                WHERE w.workspace_id = %(workspace_id)s
            ),
            (
                SELECT max(nullif(p.hold_ts, '')::numeric)
                FROM purge_reports AS p
                WHERE p.workspace_id = %(workspace_id)s AND p.channel_id = given.channel_id
            )
        ),
        6
    )::text
FROM unnest(%(channel_ids)s::text[]) AS given (channel_id)

-- name: stored_version
SELECT edited_ts
FROM messages
WHERE workspace_id = %(workspace_id)s AND message_id = %(message_id)s
