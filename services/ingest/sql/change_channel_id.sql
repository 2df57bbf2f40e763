-- name: copy_channel
INSERT INTO channels (workspace_id, channel_id, name, kind, is_archived, purpose, is_shared)
SELECT workspace_id, %(new_id)s, name, kind, is_archived, purpose, is_shared
FROM channels
WHERE workspace_id = %(workspace_id)s AND channel_id = %(old_id)s
ON CONFLICT (workspace_id, channel_id) DO NOTHING

-- name: copy_tombstones
-- Before the messages move, so that a deletion holds under both ids.
INSERT INTO tombstones (workspace_id, message_id, deleted_at)
SELECT
    workspace_id,
    %(new_prefix)s || substr(message_id, length(%(old_prefix)s) + 1),
    deleted_at
FROM tombstones
WHERE workspace_id = %(workspace_id)s AND starts_with(message_id, %(old_prefix)s)
ON CONFLICT (workspace_id, message_id) DO NOTHING

-- name: some_messages
SELECT message_id, thread_root_id
FROM messages
WHERE workspace_id = %(workspace_id)s AND channel_id = %(old_id)s
ORDER BY posted_at DESC
LIMIT %(limit)s

-- name: drop_known_messages
-- One that came under the new id already is the newer reading, or deleted.
DELETE FROM messages AS old
WHERE old.workspace_id = %(workspace_id)s
    AND old.message_id = ANY (%(message_ids)s::text[])
    AND (
        EXISTS (
            SELECT FROM messages AS known
            WHERE known.workspace_id = old.workspace_id
                AND known.message_id
                    = %(new_prefix)s || substr(old.message_id, length(%(old_prefix)s) + 1)
        )
        OR EXISTS (
            SELECT FROM tombstones AS t
            WHERE t.workspace_id = old.workspace_id
                AND t.message_id
                    = %(new_prefix)s || substr(old.message_id, length(%(old_prefix)s) + 1)
        )
    )

-- name: move_messages
UPDATE messages
SET channel_id = %(new_id)s,
    message_id = %(new_prefix)s || substr(message_id, length(%(old_prefix)s) + 1),
    thread_root_id = CASE
        WHEN starts_with(thread_root_id, %(old_prefix)s)
            THEN %(new_prefix)s || substr(thread_root_id, length(%(old_prefix)s) + 1)
        ELSE thread_root_id
    END
WHERE workspace_id = %(workspace_id)s AND message_id = ANY (%(message_ids)s::text[])
RETURNING thread_root_id

-- name: copy_members
INSERT INTO channel_members (workspace_id, channel_id, person_id, joined_ts)
SELECT workspace_id, %(new_id)s, person_id, joined_ts
FROM channel_members
WHERE workspace_id = %(workspace_id)s AND channel_id = %(old_id)s
ON CONFLICT (workspace_id, channel_id, person_id) DO NOTHING

-- name: move_channel_history
UPDATE channel_history AS moving
SET channel_id = %(new_id)s
WHERE moving.workspace_id = %(workspace_id)s
    AND moving.channel_id = %(old_id)s
    AND NOT EXISTS (
        SELECT FROM channel_history AS known
        WHERE known.workspace_id = moving.workspace_id AND known.channel_id = %(new_id)s
    )

-- name: move_thread_history
UPDATE thread_history AS moving
SET channel_id = %(new_id)s
WHERE moving.workspace_id = %(workspace_id)s
    AND moving.channel_id = %(old_id)s
    AND NOT EXISTS (
        SELECT FROM thread_history AS known
        WHERE known.workspace_id = moving.workspace_id
            AND known.channel_id = %(new_id)s
            AND known.root_ts = moving.root_ts
    )

-- name: is_read
SELECT channel_id
FROM channel_history
WHERE workspace_id = %(workspace_id)s AND channel_id = %(new_id)s

-- name: move_corrections
UPDATE corrections
SET message_id = CASE
        WHEN starts_with(message_id, %(old_prefix)s)
            THEN %(new_prefix)s || substr(message_id, length(%(old_prefix)s) + 1)
        ELSE message_id
    END,
    corrected_by_id = CASE
        WHEN starts_with(corrected_by_id, %(old_prefix)s)
            THEN %(new_prefix)s || substr(corrected_by_id, length(%(old_prefix)s) + 1)
        ELSE corrected_by_id
    END
WHERE workspace_id = %(workspace_id)s
    AND (
        starts_with(message_id, %(old_prefix)s)
        OR starts_with(corrected_by_id, %(old_prefix)s)
    )

-- name: move_feedback
UPDATE feedback
SET message_ids = ARRAY(
        SELECT
            CASE
                WHEN starts_with(cited.message_id, %(old_prefix)s)
                    THEN %(new_prefix)s || substr(cited.message_id, length(%(old_prefix)s) + 1)
                ELSE cited.message_id
            END
        FROM unnest(message_ids) WITH ORDINALITY AS cited (message_id, position)
        ORDER BY cited.position
    )
WHERE workspace_id = %(workspace_id)s
    AND EXISTS (
        SELECT FROM unnest(message_ids) AS cited (message_id)
        WHERE starts_with(cited.message_id, %(old_prefix)s)
    )

-- name: drop_channel
-- Takes along what the new id has rows of its own for.
DELETE FROM channels
WHERE workspace_id = %(workspace_id)s AND channel_id = %(old_id)s

-- name: drop_tombstones
DELETE FROM tombstones
WHERE workspace_id = %(workspace_id)s AND starts_with(message_id, %(old_prefix)s)
