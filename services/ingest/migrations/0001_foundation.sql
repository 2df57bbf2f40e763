-- Tables, roles and row-level security. Run by the owner; forward only.

CREATE EXTENSION IF NOT EXISTS vector;

-- Roles ---------------------------------------------------------------------------------------
-- NOLOGIN: a login role is granted one of them, or the owner's connection sets it.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['recall_ingest', 'recall_retrieve', 'recall_queue'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', wanted);
        END IF;
        IF NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO %I', wanted, current_user);
        END IF;
    END LOOP;
END $$;

-- Under row-level security an operator that is not LEAKPROOF can not use its index: without this
-- the lexical arm would rank every row of the tenant. Only a superuser may mark it. Elsewhere the
-- wall stays and the arm reads the permitted channels by btree: slower, never wrong
-- (docs/storage.md names the one statement to run as superuser).
DO $$
BEGIN
    ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'full-text index unused: run as superuser: ALTER FUNCTION '
            'pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF';
END $$;

-- The tenant of the transaction. Unset is an error, never an empty result.
CREATE FUNCTION current_workspace() RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    workspace text := current_setting('recall.workspace_id', true);
BEGIN
    IF workspace IS NULL OR workspace = '' THEN
        RAISE EXCEPTION 'recall.workspace_id is not set in this transaction'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN workspace;
END $$;

-- Tables without a tenant ----------------------------------------------------------------------

CREATE TABLE embedders (
    fingerprint text PRIMARY KEY,
    name text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    revision text NOT NULL,
    width integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT widths_have_a_table CHECK (width IN (384, 1536))
);

-- Tenants --------------------------------------------------------------------------------------

CREATE TABLE workspaces (
    workspace_id text PRIMARY KEY,
    source text NOT NULL,
    team_id text NOT NULL DEFAULT '',
    domain text NOT NULL DEFAULT '',
    index_bots boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT workspace_ids_are_not_empty CHECK (workspace_id <> ''),
    CONSTRAINT sources_are_known CHECK (source IN ('slack', 'synthetic', 'document'))
);

CREATE TABLE channels (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    channel_id text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    is_archived boolean NOT NULL DEFAULT false,
    purpose text NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, channel_id),
    CONSTRAINT kinds_are_known CHECK (kind IN ('public', 'private', 'direct', 'group_direct'))
);

CREATE TABLE channel_members (
    workspace_id text NOT NULL,
    channel_id text NOT NULL,
    person_id text NOT NULL,
    PRIMARY KEY (workspace_id, channel_id, person_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE
);

CREATE TABLE people (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    person_id text NOT NULL,
    display_name text NOT NULL,
    real_name text NOT NULL DEFAULT '',
    handle text NOT NULL DEFAULT '',
    team_id text NOT NULL DEFAULT '',
    is_bot boolean NOT NULL DEFAULT false,
    is_deactivated boolean NOT NULL DEFAULT false,
    -- False when the name comes only from a message's own profile.
    in_directory boolean NOT NULL DEFAULT true,
    PRIMARY KEY (workspace_id, person_id)
);

-- Messages -------------------------------------------------------------------------------------

CREATE TABLE messages (
    workspace_id text NOT NULL,
    message_id text NOT NULL,
    channel_id text NOT NULL,
    -- Slack's ts as text, six decimals kept; empty for other sources.
    ts text NOT NULL DEFAULT '',
    author_id text NOT NULL DEFAULT '',
    -- Name carried by the record itself, for authors that no directory knows.
    author_name text NOT NULL DEFAULT '',
    is_bot boolean NOT NULL DEFAULT false,
    posted_at timestamptz NOT NULL,
    edited_at timestamptz,
    edited_ts text NOT NULL DEFAULT '',
    thread_root_id text NOT NULL,
    text text NOT NULL,
    content_sha256 text NOT NULL,
    indexed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, message_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE,
    CONSTRAINT stored_messages_have_text CHECK (text <> '')
);
CREATE INDEX messages_by_thread ON messages (workspace_id, thread_root_id);
CREATE INDEX messages_by_time ON messages (workspace_id, channel_id, posted_at, message_id);
CREATE INDEX messages_by_author ON messages (workspace_id, author_id, posted_at);

-- A deleted message's id: neither a delayed event nor an older archive brings it back.
CREATE TABLE tombstones (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    message_id text NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, message_id)
);

-- Generations ----------------------------------------------------------------------------------

CREATE TABLE generations (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    generation_id text NOT NULL,
    source text NOT NULL,
    collection text NOT NULL DEFAULT '',
    kind text NOT NULL DEFAULT 'live',
    state text NOT NULL DEFAULT 'building',
    chunker_version text NOT NULL,
    embedder_fingerprint text NOT NULL REFERENCES embedders,
    width integer NOT NULL,
    text_search text NOT NULL DEFAULT 'simple',
    profile text NOT NULL DEFAULT 'recallhq',
    created_at timestamptz NOT NULL DEFAULT now(),
    promoted_at timestamptz,
    -- When another generation took over; searchable for 30 minutes from then on.
    superseded_at timestamptz,
    failure_reason text NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, generation_id),
    CONSTRAINT generation_kinds_are_known CHECK (kind IN ('live', 'sealed')),
    CONSTRAINT states_are_known CHECK (
        state IN ('building', 'validating', 'ready', 'active', 'retired', 'failed')
    ),
    CONSTRAINT widths_have_a_table CHECK (width IN (384, 1536)),
    CONSTRAINT failures_say_why CHECK ((state = 'failed') = (failure_reason <> '')),
    CONSTRAINT active_generations_were_promoted CHECK (
        state <> 'active' OR promoted_at IS NOT NULL
    )
);
CREATE UNIQUE INDEX one_active_generation
    ON generations (workspace_id, source, collection) WHERE state = 'active';

CREATE TABLE chunks (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    chunk_id text NOT NULL,
    channel_id text NOT NULL,
    thread_root_id text NOT NULL,
    kind text NOT NULL,
    text text NOT NULL,
    text_sha256 text NOT NULL,
    token_count integer NOT NULL,
    PRIMARY KEY (workspace_id, generation_id, chunk_id),
    FOREIGN KEY (workspace_id, generation_id) REFERENCES generations ON DELETE CASCADE
);
CREATE INDEX chunks_by_thread ON chunks (workspace_id, thread_root_id);
CREATE INDEX chunks_by_text ON chunks (workspace_id, text_sha256);

CREATE TABLE chunk_messages (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    chunk_id text NOT NULL,
    message_id text NOT NULL,
    position integer NOT NULL,
    PRIMARY KEY (workspace_id, generation_id, chunk_id, position),
    FOREIGN KEY (workspace_id, generation_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
);
CREATE INDEX chunk_messages_by_message ON chunk_messages (workspace_id, message_id);

-- Both index tables are narrow and carry what the filters need, so that an arm reads nothing
-- else. A chunk of several messages spans authors and a range of time, hence the array and the
-- two instants; which of its messages pass the filter is decided per message after fusion.
CREATE TABLE chunk_terms (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    chunk_id text NOT NULL,
    channel_id text NOT NULL,
    author_ids text[] NOT NULL,
    posted_from timestamptz NOT NULL,
    posted_until timestamptz NOT NULL,
    terms tsvector NOT NULL,
    PRIMARY KEY (workspace_id, generation_id, chunk_id),
    FOREIGN KEY (workspace_id, generation_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
);
CREATE INDEX chunk_terms_by_term ON chunk_terms USING gin (terms);
CREATE INDEX chunk_terms_by_channel ON chunk_terms (workspace_id, generation_id, channel_id);

CREATE TABLE vectors_384 (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    chunk_id text NOT NULL,
    channel_id text NOT NULL,
    author_ids text[] NOT NULL,
    posted_from timestamptz NOT NULL,
    posted_until timestamptz NOT NULL,
    -- Null until the embedding lane fills it; set null again when the chunk's text changes.
    embedding vector(384),
    -- Why the lane can not embed this chunk; such a row stays null and is not tried again.
    skipped text,
    PRIMARY KEY (workspace_id, generation_id, chunk_id),
    FOREIGN KEY (workspace_id, generation_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
);
CREATE INDEX vectors_384_by_channel ON vectors_384 (workspace_id, generation_id, channel_id);
CREATE INDEX vectors_384_missing ON vectors_384 (workspace_id, generation_id, chunk_id)
    WHERE embedding IS NULL AND skipped IS NULL;

CREATE TABLE vectors_1536 (
    workspace_id text NOT NULL,
    generation_id text NOT NULL,
    chunk_id text NOT NULL,
    channel_id text NOT NULL,
    author_ids text[] NOT NULL,
    posted_from timestamptz NOT NULL,
    posted_until timestamptz NOT NULL,
    embedding vector(1536),
    skipped text,
    PRIMARY KEY (workspace_id, generation_id, chunk_id),
    FOREIGN KEY (workspace_id, generation_id, chunk_id) REFERENCES chunks ON DELETE CASCADE
);
CREATE INDEX vectors_1536_by_channel ON vectors_1536 (workspace_id, generation_id, channel_id);
CREATE INDEX vectors_1536_missing ON vectors_1536 (workspace_id, generation_id, chunk_id)
    WHERE embedding IS NULL AND skipped IS NULL;

-- Content-addressed: (embedder, text) gives the same vector for ever. Emptied when the last
-- chunk with that text goes.
CREATE TABLE embedding_cache (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    embedder_fingerprint text NOT NULL REFERENCES embedders,
    text_sha256 text NOT NULL,
    -- Little-endian float32, as many as the embedder's width.
    vector bytea NOT NULL,
    PRIMARY KEY (workspace_id, embedder_fingerprint, text_sha256)
);

-- Jobs -----------------------------------------------------------------------------------------

CREATE TABLE jobs (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    job_id text NOT NULL,
    kind text NOT NULL,
    dedup_key text NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    state text NOT NULL DEFAULT 'ready',
    run_at timestamptz NOT NULL DEFAULT now(),
    claim_number bigint NOT NULL DEFAULT 0,
    leased_until timestamptz,
    heartbeat_at timestamptz,
    -- Asked for again while it was running: completion makes it ready instead of done.
    wanted_again boolean NOT NULL DEFAULT false,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 8,
    last_error text NOT NULL DEFAULT '',
    trace_context text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (workspace_id, job_id),
    UNIQUE (workspace_id, kind, dedup_key),
    CONSTRAINT job_kinds_are_known CHECK (
        kind IN ('purge', 'event', 'command', 'backfill', 'embedding')
    ),
    CONSTRAINT job_states_are_known CHECK (state IN ('ready', 'running', 'done', 'dead')),
    CONSTRAINT running_jobs_are_leased CHECK (
        (state = 'running') = (leased_until IS NOT NULL)
        AND (state = 'running') = (heartbeat_at IS NOT NULL)
    ),
    CONSTRAINT finished_jobs_say_when CHECK ((state IN ('done', 'dead')) = (finished_at IS NOT NULL))
);
CREATE INDEX jobs_to_claim ON jobs (kind, run_at) WHERE state IN ('ready', 'running');

-- Row-level security ---------------------------------------------------------------------------
-- FORCE, so that the owner is bound too unless it is a superuser.

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY[
        'workspaces', 'channels', 'channel_members', 'people', 'messages', 'tombstones',
        'generations', 'chunks', 'chunk_messages', 'chunk_terms', 'vectors_384', 'vectors_1536',
        'embedding_cache', 'jobs'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            'CREATE POLICY tenant ON %I TO recall_ingest, recall_retrieve '
            'USING (workspace_id = (SELECT current_workspace())) '
            'WITH CHECK (workspace_id = (SELECT current_workspace()))', tenant_table);
        EXECUTE format(
            'GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO recall_ingest', tenant_table);
        EXECUTE format('GRANT SELECT ON %I TO recall_retrieve', tenant_table);
    END LOOP;
END $$;

-- Ingest refreshes the planner's statistics after a bulk load (PostgreSQL 17 and newer allow it).
DO $$
BEGIN
    IF current_setting('server_version_num')::integer >= 170000 THEN
        GRANT MAINTAIN ON messages, chunks, chunk_messages, chunk_terms, vectors_384, vectors_1536
            TO recall_ingest;
    END IF;
END $$;

-- Retrieve has no business with jobs or the cache.
REVOKE SELECT ON jobs, embedding_cache FROM recall_retrieve;

-- The queue role claims and counts across tenants; handlers then work as recall_ingest.
CREATE POLICY queue ON jobs TO recall_queue USING (true) WITH CHECK (true);
CREATE POLICY queue ON workspaces FOR SELECT TO recall_queue USING (true);
GRANT SELECT, UPDATE ON jobs TO recall_queue;
GRANT SELECT ON workspaces TO recall_queue;

GRANT SELECT ON embedders TO recall_ingest, recall_retrieve;
GRANT INSERT ON embedders TO recall_ingest;
GRANT EXECUTE ON FUNCTION current_workspace() TO recall_ingest, recall_retrieve;
