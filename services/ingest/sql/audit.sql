-- name: record_audit
INSERT INTO audit_events (workspace_id, kind, actor, generation_id, details)
VALUES (%(workspace_id)s, %(kind)s, %(actor)s, %(generation_id)s, %(details)s::jsonb)
