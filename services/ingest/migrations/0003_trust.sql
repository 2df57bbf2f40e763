-- Trust: sealed generations of documents, their life, calibrations, the audit, the fact ledger.

-- Settings of trust; null means the product's default (strict for documents only, 0.10, 0.10).
ALTER TABLE workspaces
    ADD COLUMN is_strict boolean,
    ADD COLUMN false_confirm_target double precision,
    ADD COLUMN false_abstain_target double precision,
    ADD CONSTRAINT targets_are_rates CHECK (
        false_confirm_target > 0 AND false_confirm_target < 1
        AND false_abstain_target > 0 AND false_abstain_target < 1
    );

ALTER TABLE generations
    ADD COLUMN parent_generation_id text NOT NULL DEFAULT '',
    -- SHA-256 of what defines it beside its content: embedder, chunker, text search, profile.
    ADD COLUMN pipeline_fingerprint text NOT NULL DEFAULT '',
    -- Digest of the manifest it was built of, and the same less what was erased since.
    ADD COLUMN manifest_digest text NOT NULL DEFAULT '',
    ADD COLUMN corpus_fingerprint text NOT NULL DEFAULT '',
    ADD COLUMN validated_at timestamptz,
    ADD COLUMN validation jsonb NOT NULL DEFAULT '{}';

-- Documents ------------------------------------------------------------------------------------
-- A collection is a channel of its workspace (channel id = collection name), so rights and filters
-- work as they do in chat. A document is one source; its pieces are what a search returns, each
-- with a message id of "document:<collection>:<path>#<n>" and exactly one chunk.

CREATE TABLE sources (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    source_uri text NOT NULL,
    channel_id text NOT NULL,
    -- Path inside the collection, as people name it.
    path text NOT NULL,
    version_id text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    title text NOT NULL DEFAULT '',
    document_type text NOT NULL DEFAULT '',
    valid_from date,
    valid_until date,
    -- Why its validity can not be read; such a document is never trusted.
    invalid_metadata text NOT NULL DEFAULT '',
    -- Facts and relations that it declares, and paths that it depends on, as in its frontmatter.
    facts jsonb NOT NULL DEFAULT '[]',
    depends_on text[] NOT NULL DEFAULT '{}',
    supersedes text[] NOT NULL DEFAULT '{}',
    relations jsonb NOT NULL DEFAULT '[]',
    -- When this URI was first written to any generation; building again never re-dates it.
    first_indexed_at timestamptz NOT NULL,
    indexed_at timestamptz NOT NULL DEFAULT now(),
    -- Generation that it was carried forward from; empty when it was read anew.
    carried_from text NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, generation_id, source_uri),
    FOREIGN KEY (workspace_id, generation_id) REFERENCES generations ON DELETE CASCADE
);
CREATE INDEX sources_by_path ON sources (workspace_id, generation_id, path);

CREATE TABLE source_pieces (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    message_id text NOT NULL,
    source_uri text NOT NULL,
    ordinal integer NOT NULL,
    channel_id text NOT NULL,
    text text NOT NULL,
    content_sha256 text NOT NULL,
    PRIMARY KEY (workspace_id, generation_id, message_id),
    FOREIGN KEY (workspace_id, generation_id, source_uri) REFERENCES sources ON DELETE CASCADE
);
CREATE INDEX source_pieces_by_source
    ON source_pieces (workspace_id, generation_id, source_uri, ordinal);

-- Erased documents: no later build brings them back.
CREATE TABLE source_tombstones (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    channel_id text NOT NULL,
    source_uri text NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, channel_id, source_uri)
);

-- Which document replaces which, as its author declared it and the build resolved it.
CREATE TABLE supersessions (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    -- The newer document.
    source_uri text NOT NULL,
    -- The one it replaces.
    superseded_uri text NOT NULL,
    -- Several documents carry the declared name, and this is one of them.
    is_ambiguous boolean NOT NULL DEFAULT false,
    -- When the claim was first written.
    asserted_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, generation_id, source_uri, superseded_uri),
    FOREIGN KEY (workspace_id, generation_id, source_uri) REFERENCES sources ON DELETE CASCADE
);
CREATE INDEX supersessions_of
    ON supersessions (workspace_id, generation_id, superseded_uri);

-- Authored relations whose two ends are documents of the generation.
CREATE TABLE document_relations (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    source_uri text NOT NULL,
    relation text NOT NULL,
    target_uri text NOT NULL,
    confidence double precision NOT NULL DEFAULT 1,
    PRIMARY KEY (workspace_id, generation_id, source_uri, relation, target_uri),
    FOREIGN KEY (workspace_id, generation_id, source_uri) REFERENCES sources ON DELETE CASCADE,
    CONSTRAINT relations_are_known CHECK (
        relation IN ('supports', 'references', 'depends_on', 'caused', 'supersedes')
    )
);

-- Calibrations ---------------------------------------------------------------------------------

-- Labelled questions, stored once; never changed.
CREATE TABLE label_sets (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    labels_sha256 text NOT NULL,
    labels jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, labels_sha256)
);

CREATE TABLE calibrations (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    calibration_id text NOT NULL,
    generation_id text NOT NULL,
    rule text NOT NULL,
    state text NOT NULL,
    -- Why it was rejected or voided.
    reason text NOT NULL DEFAULT '',
    -- What a search needs: threshold, weights, scales. Its hash is checked on every read.
    model jsonb NOT NULL,
    model_sha256 text NOT NULL,
    labels_sha256 text NOT NULL,
    -- What it was measured on; any change makes it untrue.
    pipeline_fingerprint text NOT NULL,
    corpus_fingerprint text NOT NULL DEFAULT '',
    -- Chunks of the generation when it was measured, for the replay after 5 % of change.
    corpus_chunks bigint NOT NULL DEFAULT 0,
    false_confirm_target double precision NOT NULL,
    false_abstain_target double precision NOT NULL,
    more_answerable_needed integer NOT NULL DEFAULT 0,
    more_unanswerable_needed integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    voided_at timestamptz,
    -- When its labels are to be replayed next, and why.
    replay_at timestamptz NOT NULL DEFAULT 'infinity',
    replay_cause text NOT NULL DEFAULT 'daily',
    PRIMARY KEY (workspace_id, calibration_id),
    FOREIGN KEY (workspace_id, labels_sha256) REFERENCES label_sets,
    CONSTRAINT rules_are_known CHECK (rule IN ('logistic', 'reference')),
    CONSTRAINT calibration_states_are_known CHECK (
        state IN ('published', 'rejected', 'superseded', 'voided')
    ),
    CONSTRAINT refusals_say_why CHECK (state NOT IN ('rejected', 'voided') OR reason <> '')
);
CREATE UNIQUE INDEX one_published_calibration
    ON calibrations (workspace_id, generation_id) WHERE state = 'published';

-- Every measurement of a calibration's error rates; the first one certified or rejected it.
CREATE TABLE calibration_replays (
    workspace_id text NOT NULL,
    calibration_id text NOT NULL,
    measured_at timestamptz NOT NULL DEFAULT now(),
    cause text NOT NULL,
    answerable integer NOT NULL,
    unanswerable integer NOT NULL,
    false_confirms integer NOT NULL,
    false_abstains integer NOT NULL,
    false_confirm_bound double precision NOT NULL,
    false_abstain_bound double precision NOT NULL,
    area_under_curve double precision NOT NULL,
    PRIMARY KEY (workspace_id, calibration_id, measured_at),
    FOREIGN KEY (workspace_id, calibration_id) REFERENCES calibrations ON DELETE CASCADE
);

-- A deletion that touches what a label points at has the labels replayed at once: the threshold was
-- measured on a corpus that is no more.
CREATE INDEX label_sets_by_relevant ON label_sets USING gin (labels jsonb_path_ops);
CREATE FUNCTION replay_after_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE calibrations AS c
    SET replay_at = least(c.replay_at, now()), replay_cause = 'erasure'
    FROM label_sets AS l, erased AS e
    WHERE c.state = 'published'
        AND c.workspace_id = e.workspace_id
        AND l.workspace_id = c.workspace_id
        AND l.labels_sha256 = c.labels_sha256
        AND l.labels @> jsonb_build_array(
            jsonb_build_object('relevant_ids', jsonb_build_array(e.message_id))
        );
    RETURN NULL;
END $$;
CREATE TRIGGER replay_after_erasure AFTER INSERT ON tombstones
    REFERENCING NEW TABLE AS erased
    FOR EACH STATEMENT EXECUTE FUNCTION replay_after_erasure();

-- Audit ----------------------------------------------------------------------------------------

CREATE TABLE audit_events (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    event_id bigint GENERATED ALWAYS AS IDENTITY,
    happened_at timestamptz NOT NULL DEFAULT now(),
    -- "generation_promoted", "generation_rolled_back", "generation_failed", "source_erased", ...
    kind text NOT NULL,
    actor text NOT NULL DEFAULT '',
    generation_id text NOT NULL DEFAULT '',
    -- Ids and numbers, never text of a message or document.
    details jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, event_id)
);

-- Ledger ---------------------------------------------------------------------------------------

CREATE TABLE evidence_cards (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    card_id text NOT NULL,
    generation_id text NOT NULL,
    channel_id text NOT NULL,
    source_uri text NOT NULL,
    source_sha256 text NOT NULL,
    pipeline_fingerprint text NOT NULL,
    calibration_id text NOT NULL DEFAULT '',
    facts jsonb NOT NULL,
    card_sha256 text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, card_id)
);

CREATE TABLE fact_events (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    event_id text NOT NULL,
    request_id text NOT NULL,
    kind text NOT NULL,
    decision text NOT NULL,
    namespace text NOT NULL,
    subject text NOT NULL,
    predicate text NOT NULL,
    object text NOT NULL,
    context text NOT NULL DEFAULT '',
    valid_from date,
    valid_until date,
    card_ids text[] NOT NULL,
    -- Documents that declare the fact, and the collection of each.
    source_uris text[] NOT NULL DEFAULT '{}',
    channel_ids text[] NOT NULL DEFAULT '{}',
    -- SHA-256 of the request, so that a request id is not used for something else.
    request_sha256 text NOT NULL DEFAULT '',
    -- Assertion that this event ends (kind "superseded") or repeats (kind "duplicate").
    asserted_event_id text NOT NULL DEFAULT '',
    -- Assertion that replaces the ended one, from its first valid day on.
    replaced_by_event_id text NOT NULL DEFAULT '',
    actor text NOT NULL,
    explanation text NOT NULL DEFAULT '',
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, event_id),
    CONSTRAINT fact_kinds_are_known CHECK (
        kind IN ('asserted', 'superseded', 'duplicate', 'rejected', 'abstained')
    )
);
CREATE UNIQUE INDEX one_decision_a_request
    ON fact_events (workspace_id, request_id) WHERE kind <> 'superseded';
CREATE INDEX fact_events_by_subject
    ON fact_events (workspace_id, namespace, subject, predicate, context);

-- What was written once is never changed: labels, audit, cards and ledger. A purge of the whole
-- workspace deletes them.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
DO $$
DECLARE
    fixed_table text;
BEGIN
    FOREACH fixed_table IN ARRAY ARRAY['label_sets', 'audit_events', 'evidence_cards', 'fact_events'] LOOP
        EXECUTE format(
            'CREATE TRIGGER append_only BEFORE UPDATE ON %I '
            'FOR EACH ROW EXECUTE FUNCTION refuse_change()', fixed_table);
    END LOOP;
END $$;

-- Row-level security ---------------------------------------------------------------------------

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY[
        'sources', 'source_pieces', 'source_tombstones', 'supersessions', 'document_relations',
        'label_sets', 'calibrations', 'calibration_replays', 'audit_events', 'evidence_cards',
        'fact_events'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant ON %I TO recall_ingest, recall_retrieve '
            'USING (workspace_id = (SELECT current_workspace())) '
            'WITH CHECK (workspace_id = (SELECT current_workspace()))', tenant_table);
        EXECUTE format(
            'GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO recall_ingest', tenant_table);
    END LOOP;
END $$;

GRANT SELECT ON sources, source_pieces, supersessions, document_relations TO recall_retrieve;
-- A search loads the published threshold of the generation that it is pinned to.
GRANT SELECT (workspace_id, calibration_id, generation_id, rule, state, reason, created_at, model,
    model_sha256, pipeline_fingerprint, corpus_fingerprint) ON calibrations TO recall_retrieve;

-- Ingest finds what is due to be replayed over all tenants.
CREATE POLICY queue ON calibrations FOR SELECT TO recall_queue USING (true);
GRANT SELECT (workspace_id, calibration_id, generation_id, state, replay_at)
    ON calibrations TO recall_queue;

-- Fresh rows of a bulk load; see 0001.
DO $$
BEGIN
    IF current_setting('server_version_num')::integer >= 170000 THEN
        GRANT MAINTAIN ON sources, source_pieces TO recall_ingest;
    END IF;
END $$;
