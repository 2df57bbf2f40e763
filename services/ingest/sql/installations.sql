-- name: begin_install
INSERT INTO install_states (workspace_id, state_sha256, expires_at)
VALUES (%(workspace_id)s, %(state_sha256)s, now() + make_interval(secs => %(seconds)s))

-- name: forget_old_states
DELETE FROM install_states
WHERE workspace_id = %(workspace_id)s AND expires_at < now()

-- name: use_state
DELETE FROM install_states
WHERE workspace_id = %(workspace_id)s
    AND state_sha256 = %(state_sha256)s
    AND expires_at >= now()
RETURNING state_sha256

-- name: set_domain
UPDATE workspaces
SET domain = %(domain)s
WHERE workspace_id = %(workspace_id)s

-- name: forget_installations
DELETE FROM installations
WHERE workspace_id = %(workspace_id)s

-- name: save_installation
INSERT INTO installations (
    workspace_id, installation_id, team_id, enterprise_id, is_enterprise_install, app_id,
    bot_user_id, bot_id, url, scopes, bot_token, refresh_token, token_expires_at, installed_by
)
VALUES (
    %(workspace_id)s, %(installation_id)s, %(team_id)s, %(enterprise_id)s,
    %(is_enterprise_install)s, %(app_id)s, %(bot_user_id)s, %(bot_id)s, %(url)s, %(scopes)s,
    %(bot_token)s, %(refresh_token)s, %(token_expires_at)s, %(installed_by)s
)

-- name: read_installation
-- Locked, so that one caller at a time is told to rotate.
SELECT
    i.bot_token, i.refresh_token, i.bot_user_id, w.team_id, i.url, i.enterprise_id,
    coalesce(i.token_expires_at <= now() + make_interval(secs => %(margin_seconds)s), false),
    coalesce(i.token_expires_at <= now(), false),
    coalesce(i.refresh_leased_until > now(), false)
FROM installations AS i
INNER JOIN workspaces AS w ON w.workspace_id = i.workspace_id
WHERE i.workspace_id = %(workspace_id)s
FOR UPDATE OF i

-- name: lease_refresh
UPDATE installations
SET refresh_leased_until = now() + make_interval(secs => %(lease_seconds)s)
WHERE workspace_id = %(workspace_id)s

-- name: save_tokens
UPDATE installations
SET bot_token = %(bot_token)s, refresh_token = %(refresh_token)s
WHERE workspace_id = %(workspace_id)s

-- name: save_rotated_tokens
UPDATE installations
SET bot_token = %(bot_token)s,
    refresh_token = %(refresh_token)s,
    token_expires_at = %(token_expires_at)s,
    refresh_leased_until = NULL
WHERE workspace_id = %(workspace_id)s
