-- name: lock_ledger
-- One decision of a workspace at a time: each sees what the ones before it recorded.
SELECT pg_advisory_xact_lock(hashtextextended('ledger:' || %(workspace_id)s, 0))

-- name: prior_decision
SELECT e.decision, e.event_id, e.asserted_event_id, e.explanation, e.request_sha256,
    ARRAY(
        SELECT ended.asserted_event_id
        FROM fact_events AS ended
        WHERE ended.workspace_id = e.workspace_id
            AND ended.request_id = e.request_id
            AND ended.kind = 'superseded'
        ORDER BY ended.asserted_event_id
    )
FROM fact_events AS e
WHERE e.workspace_id = %(workspace_id)s
    AND e.request_id = %(request_id)s
    AND e.kind <> 'superseded'

-- name: declaring_sources
-- Trusted documents of one generation that declare facts. A document whose metadata can not be
-- read declares nothing.
SELECT s.source_uri, s.channel_id, s.sha256, s.facts, g.pipeline_fingerprint
FROM sources AS s
INNER JOIN generations AS g
    ON g.workspace_id = s.workspace_id AND g.generation_id = s.generation_id
WHERE s.workspace_id = %(workspace_id)s
    AND s.generation_id = %(generation_id)s
    AND s.source_uri = ANY (%(source_uris)s::text[])
    AND s.channel_id = ANY (%(channel_ids)s::text[])
    AND s.invalid_metadata = ''
    AND s.facts <> '[]'::jsonb

-- name: save_card
INSERT INTO evidence_cards (
    workspace_id, card_id, generation_id, channel_id, source_uri, source_sha256,
    pipeline_fingerprint, calibration_id, facts, card_sha256
)
VALUES (
    %(workspace_id)s, %(card_id)s, %(generation_id)s, %(channel_id)s, %(source_uri)s,
    %(source_sha256)s, %(pipeline_fingerprint)s, %(calibration_id)s, %(facts)s::jsonb,
    %(card_sha256)s
)
ON CONFLICT (workspace_id, card_id) DO NOTHING

-- name: read_cards
SELECT card_id, generation_id, channel_id, source_uri, source_sha256, pipeline_fingerprint,
    calibration_id, facts, card_sha256
FROM evidence_cards
WHERE workspace_id = %(workspace_id)s
    AND card_id = ANY (%(card_ids)s::text[])
    AND channel_id = ANY (%(channel_ids)s::text[])

-- name: standings
-- How each card stands: what serves its collection, what judged it, what its document says now.
SELECT c.card_id, coalesce(g.generation_id, ''), coalesce(g.pipeline_fingerprint, ''),
    coalesce(k.calibration_id, ''), s.sha256, s.facts, s.valid_from, s.valid_until
FROM evidence_cards AS c
LEFT JOIN generations AS g
    ON g.workspace_id = c.workspace_id
    AND g.source = 'document'
    AND g.collection = c.channel_id
    AND g.state = 'active'
LEFT JOIN calibrations AS k
    ON k.workspace_id = g.workspace_id
    AND k.generation_id = g.generation_id
    AND k.state = 'published'
LEFT JOIN sources AS s
    ON s.workspace_id = g.workspace_id
    AND s.generation_id = g.generation_id
    AND s.source_uri = c.source_uri
WHERE c.workspace_id = %(workspace_id)s
    AND c.card_id = ANY (%(card_ids)s::text[])
    AND c.channel_id = ANY (%(channel_ids)s::text[])

-- name: assertions
-- Assertions as known at an instant, each with the windows of what replaced it by then.
-- Erased documents are not named any more.
SELECT a.event_id, a.namespace, a.subject, a.predicate, a.object, a.context, a.valid_from,
    a.valid_until, backing.source_uris, backing.channel_ids, a.recorded_at, a.actor,
    coalesce(
        (
            SELECT array_agg(coalesce(r.valid_from::text, ''))
            FROM fact_events AS e
            INNER JOIN fact_events AS r
                ON r.workspace_id = e.workspace_id AND r.event_id = e.replaced_by_event_id
            WHERE e.workspace_id = a.workspace_id
                AND e.kind = 'superseded'
                AND e.asserted_event_id = a.event_id
                AND e.recorded_at <= coalesce(%(known_as_of)s::timestamptz, 'infinity')
        ),
        '{}'
    )
FROM fact_events AS a
CROSS JOIN LATERAL (
    SELECT
        coalesce(array_agg(b.source_uri ORDER BY b.n), '{}') AS source_uris,
        coalesce(array_agg(b.channel_id ORDER BY b.n), '{}') AS channel_ids
    FROM unnest(a.source_uris, a.channel_ids) WITH ORDINALITY AS b (source_uri, channel_id, n)
    WHERE NOT EXISTS (
        SELECT FROM source_tombstones AS t
        WHERE t.workspace_id = a.workspace_id
            AND t.channel_id = b.channel_id
            AND t.source_uri = b.source_uri
    )
) AS backing
WHERE a.workspace_id = %(workspace_id)s
    AND a.kind = 'asserted'
    AND a.recorded_at <= coalesce(%(known_as_of)s::timestamptz, 'infinity')
    AND (%(namespace)s = '' OR a.namespace = %(namespace)s)
    AND (%(subject)s = '' OR a.subject = %(subject)s)
    AND (%(predicate)s = '' OR a.predicate = %(predicate)s)
ORDER BY a.namespace, a.subject, a.predicate, a.context, a.recorded_at, a.event_id

-- name: replaced_sources
-- Documents that the claim's documents replace, directly or through others, as authored in the
-- generations that serve.
WITH RECURSIVE replaced (generation_id, source_uri) AS (
    SELECT x.generation_id, x.superseded_uri
    FROM supersessions AS x
    INNER JOIN unnest(%(generation_ids)s::text[], %(source_uris)s::text[])
        AS claimed (generation_id, source_uri)
        ON claimed.generation_id = x.generation_id AND claimed.source_uri = x.source_uri
    WHERE x.workspace_id = %(workspace_id)s AND NOT x.is_ambiguous
    UNION
    SELECT x.generation_id, x.superseded_uri
    FROM replaced AS r
    INNER JOIN supersessions AS x
        ON x.workspace_id = %(workspace_id)s
        AND x.generation_id = r.generation_id
        AND x.source_uri = r.source_uri
        AND NOT x.is_ambiguous
)
SELECT DISTINCT source_uri FROM replaced

-- name: existing_sources
SELECT DISTINCT s.source_uri
FROM sources AS s
INNER JOIN generations AS g
    ON g.workspace_id = s.workspace_id
    AND g.generation_id = s.generation_id
    AND g.state = 'active'
WHERE s.workspace_id = %(workspace_id)s
    AND s.source_uri = ANY (%(source_uris)s::text[])

-- name: save_event
INSERT INTO fact_events (
    workspace_id, event_id, request_id, kind, decision, namespace, subject, predicate, object,
    context, valid_from, valid_until, card_ids, source_uris, channel_ids, asserted_event_id,
    replaced_by_event_id, request_sha256, actor, explanation, recorded_at
)
VALUES (
    %(workspace_id)s, %(event_id)s, %(request_id)s, %(kind)s, %(decision)s, %(namespace)s,
    %(subject)s, %(predicate)s, %(object)s, %(context)s, %(valid_from)s, %(valid_until)s,
    %(card_ids)s, %(source_uris)s, %(channel_ids)s, %(asserted_event_id)s,
    %(replaced_by_event_id)s, %(request_sha256)s, %(actor)s, %(explanation)s, clock_timestamp()
)

-- name: correctable
-- Whether both messages are stored and the second is the newer one.
SELECT 1
FROM messages AS older
INNER JOIN messages AS newer
    ON newer.workspace_id = older.workspace_id AND newer.posted_at > older.posted_at
WHERE older.workspace_id = %(workspace_id)s
    AND older.message_id = %(subject)s
    AND newer.message_id = %(object)s

-- name: withdraw_corrections
-- A correction that a fact declared goes when the fact is ended.
DELETE FROM corrections AS c
WHERE c.workspace_id = %(workspace_id)s
    AND c.declared_by LIKE 'ledger:%%'
    AND EXISTS (
        SELECT FROM fact_events AS e
        WHERE e.workspace_id = c.workspace_id
            AND e.kind = 'superseded'
            AND e.asserted_event_id = substr(c.declared_by, length('ledger:') + 1)
    )

-- name: derive_corrections
-- Every asserted, not ended fact that one message corrects another becomes a correction as soon as
-- both messages are stored.
INSERT INTO corrections (workspace_id, message_id, corrected_by_id, declared_by)
SELECT a.workspace_id, a.subject, a.object, 'ledger:' || a.event_id
FROM fact_events AS a
INNER JOIN messages AS older
    ON older.workspace_id = a.workspace_id AND older.message_id = a.subject
INNER JOIN messages AS newer
    ON newer.workspace_id = a.workspace_id AND newer.message_id = a.object
WHERE a.workspace_id = %(workspace_id)s
    AND a.kind = 'asserted'
    AND a.namespace = %(namespace)s
    AND a.predicate = %(predicate)s
    AND newer.posted_at > older.posted_at
    AND NOT EXISTS (
        SELECT FROM fact_events AS e
        WHERE e.workspace_id = a.workspace_id
            AND e.kind = 'superseded'
            AND e.asserted_event_id = a.event_id
    )
ON CONFLICT (workspace_id, message_id, corrected_by_id) DO NOTHING

-- name: forget_fact_events
-- Of erased documents: facts that no other document backs, what was decided on their cards alone,
-- and what ends or repeats such a fact.
WITH gone_cards AS (
    SELECT card_id
    FROM evidence_cards
    WHERE workspace_id = %(workspace_id)s
        AND channel_id = %(collection)s
        AND source_uri = ANY (%(uris)s::text[])
),
gone AS (
    SELECT e.event_id
    FROM fact_events AS e
    WHERE e.workspace_id = %(workspace_id)s
        AND (
            (e.source_uris <> '{}' AND e.source_uris <@ %(uris)s::text[]
                AND e.channel_ids <@ ARRAY[%(collection)s::text])
            OR (e.source_uris = '{}' AND e.card_ids <@ ARRAY(SELECT card_id FROM gone_cards))
        )
)
DELETE FROM fact_events AS e
WHERE e.workspace_id = %(workspace_id)s
    AND (
        e.event_id IN (SELECT event_id FROM gone)
        OR e.asserted_event_id IN (SELECT event_id FROM gone)
        OR e.replaced_by_event_id IN (SELECT event_id FROM gone)
    )

-- name: forget_cards
DELETE FROM evidence_cards
WHERE workspace_id = %(workspace_id)s
    AND channel_id = %(collection)s
    AND source_uri = ANY (%(uris)s::text[])
