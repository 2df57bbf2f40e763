-- name: posted
SELECT message_id, channel_id, posted_at
FROM messages AS m
WHERE m.workspace_id = %(workspace_id)s
    AND m.message_id = ANY (%(message_ids)s::text[])
    AND NOT EXISTS (
        SELECT FROM tombstones AS t
        WHERE t.workspace_id = m.workspace_id AND t.message_id = m.message_id
    )

-- name: save_correction
INSERT INTO corrections (workspace_id, message_id, corrected_by_id, declared_by)
VALUES (%(workspace_id)s, %(message_id)s, %(corrected_by_id)s, %(person_id)s)
ON CONFLICT (workspace_id, message_id, corrected_by_id) DO NOTHING
