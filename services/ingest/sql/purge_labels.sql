-- name: sets_pointing_at
SELECT labels_sha256, labels
FROM label_sets
WHERE workspace_id = %(workspace_id)s
    AND EXISTS (
        SELECT
        FROM jsonb_array_elements(labels) AS label,
            jsonb_array_elements_text(label -> 'relevant_ids') AS relevant (id)
        WHERE starts_with(relevant.id, %(id_prefix)s)
    )

-- name: save_rest
INSERT INTO label_sets (workspace_id, labels_sha256, labels)
VALUES (%(workspace_id)s, %(labels_sha256)s, %(labels)s::jsonb)
ON CONFLICT (workspace_id, labels_sha256) DO NOTHING

-- name: go_over_to_rest
UPDATE calibrations
SET
    labels_sha256 = %(labels_sha256)s,
    replay_at = CASE WHEN state = 'published' THEN now() ELSE replay_at END,
    replay_cause = CASE WHEN state = 'published' THEN 'erasure' ELSE replay_cause END
WHERE workspace_id = %(workspace_id)s AND labels_sha256 = %(old_sha256)s
