-- name: read_settings
SELECT
    index_bots,
    retention_days,
    history_interval_seconds,
    history_page_size,
    CASE is_strict WHEN true THEN 'strict' WHEN false THEN 'relaxed' END,
    false_confirm_target,
    false_abstain_target
FROM workspaces
WHERE workspace_id = %(workspace_id)s

-- name: update_settings
-- An absent value stays; a number of 0 goes back to the product's default.
UPDATE workspaces
SET index_bots = coalesce(%(index_bots)s::boolean, index_bots),
    retention_days = nullif(coalesce(%(retention_days)s::integer, retention_days), 0),
    history_interval_seconds = nullif(
        coalesce(%(history_interval_seconds)s::double precision, history_interval_seconds), 0
    ),
    history_page_size = nullif(coalesce(%(history_page_size)s::integer, history_page_size), 0),
    is_strict = CASE %(trust)s::text
        WHEN 'strict' THEN true WHEN 'relaxed' THEN false WHEN 'default' THEN null ELSE is_strict
    END,
    false_confirm_target = nullif(
        coalesce(%(false_confirm_target)s::double precision, false_confirm_target), 0
    ),
    false_abstain_target = nullif(
        coalesce(%(false_abstain_target)s::double precision, false_abstain_target), 0
    )
WHERE workspace_id = %(workspace_id)s

-- name: replay_after_targets
-- What was certified at other targets is measured against the new ones.
UPDATE calibrations
SET replay_at = least(replay_at, now()), replay_cause = 'targets'
WHERE workspace_id = %(workspace_id)s AND state = 'published'

-- name: expired_messages
SELECT m.message_id
FROM messages AS m
INNER JOIN workspaces AS w ON w.workspace_id = m.workspace_id
WHERE m.workspace_id = %(workspace_id)s
    AND m.posted_at <= now() - make_interval(days => w.retention_days)
LIMIT %(limit)s
