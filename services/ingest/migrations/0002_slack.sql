-- Live Slack: installations, pacing, history, deliveries, feedback, corrections, purges.

-- Settings a workspace's admins may turn; null means the product's default.
ALTER TABLE workspaces
    ADD COLUMN retention_days integer,
    ADD COLUMN history_interval_seconds double precision,
    ADD COLUMN history_page_size integer,
    ADD CONSTRAINT retention_is_positive CHECK (retention_days > 0),
    ADD CONSTRAINT history_intervals_are_sane CHECK (history_interval_seconds BETWEEN 0.01 AND 3600),
    ADD CONSTRAINT history_pages_are_sane CHECK (history_page_size BETWEEN 1 AND 999);

ALTER TABLE channels ADD COLUMN is_shared boolean NOT NULL DEFAULT false;

-- ts of the event that told of the joining; empty when a listing told it. Decides between a join
-- and a leave that arrive in the wrong order.
ALTER TABLE channel_members ADD COLUMN joined_ts text NOT NULL DEFAULT '';

-- Names changed: what shows them is rendered again, last of all work.
ALTER TABLE jobs
    DROP CONSTRAINT job_kinds_are_known,
    ADD CONSTRAINT job_kinds_are_known CHECK (
        kind IN ('purge', 'event', 'command', 'backfill', 'embedding', 'rendering')
    );

-- The queue is fair to workspaces by start-time fair queueing (Goyal, Vin and Cheng, 1996). A job's
-- turn is its place in its own workspace's line, counted from where the queue stands; jobs of a kind
-- are claimed by turn. However long one workspace's line is, at most one of its jobs goes before
-- another workspace's next one.
ALTER TABLE jobs ADD COLUMN turn bigint NOT NULL DEFAULT 0;
-- Holders in a row that fell silent: a job that kills its holder must not do so for ever.
ALTER TABLE jobs ADD COLUMN lapses integer NOT NULL DEFAULT 0;
DROP INDEX jobs_to_claim;
CREATE INDEX jobs_to_claim ON jobs (kind, turn, run_at) WHERE state = 'ready';
-- Without heartbeat_at, so that a heartbeat touches no index.
CREATE INDEX jobs_running ON jobs (kind) WHERE state = 'running';
CREATE INDEX jobs_served ON jobs (kind, turn) WHERE state <> 'ready';
CREATE INDEX jobs_in_line ON jobs (workspace_id, kind, turn);
CREATE INDEX jobs_before_commands ON jobs (workspace_id, created_at)
    WHERE kind IN ('purge', 'event') AND state IN ('ready', 'running');
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- The turn of a workspace's next job: behind its own last one, and not before the job that the
-- queue serves now. That is the one number a writer learns about other tenants, so it runs as the
-- queue role.
CREATE FUNCTION next_turn(of_workspace text, of_kind text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT greatest(
        (SELECT turn FROM jobs WHERE kind = of_kind AND state <> 'ready' ORDER BY turn DESC LIMIT 1),
        (SELECT turn FROM jobs WHERE kind = of_kind AND state = 'ready' ORDER BY turn LIMIT 1),
        (SELECT turn + 1 FROM jobs WHERE workspace_id = of_workspace AND kind = of_kind
            ORDER BY turn DESC LIMIT 1),
        0
    )
$$;
-- An owner that is no superuser made these roles and still may not act as them.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['recall_ingest', 'recall_retrieve', 'recall_queue'] LOOP
        IF NOT pg_has_role(current_user, wanted, 'SET') THEN
            EXECUTE format('GRANT %I TO %I WITH SET TRUE', wanted, current_user);
        END IF;
    END LOOP;
END $$;
GRANT CREATE ON SCHEMA public TO recall_queue;
ALTER FUNCTION next_turn(text, text) OWNER TO recall_queue;
REVOKE CREATE ON SCHEMA public FROM recall_queue;
REVOKE EXECUTE ON FUNCTION next_turn(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_turn(text, text) TO recall_ingest;

-- Finished jobs are forgotten after some days.
GRANT DELETE ON jobs TO recall_queue;

-- One Slack app installed in one workspace. Tokens are encrypted with RECALL_TOKEN_KEY.
CREATE TABLE installations (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    installation_id text NOT NULL,
    team_id text NOT NULL DEFAULT '',
    enterprise_id text NOT NULL DEFAULT '',
    is_enterprise_install boolean NOT NULL DEFAULT false,
    app_id text NOT NULL DEFAULT '',
    bot_user_id text NOT NULL,
    bot_id text NOT NULL DEFAULT '',
    -- As auth.test gives it, "https://<domain>.slack.com/".
    url text NOT NULL DEFAULT '',
    scopes text[] NOT NULL DEFAULT '{}',
    bot_token bytea NOT NULL,
    refresh_token bytea,
    token_expires_at timestamptz,
    -- One caller at a time refreshes a token; the others keep using the old one.
    refresh_leased_until timestamptz,
    installed_by text NOT NULL DEFAULT '',
    installed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, installation_id),
    CONSTRAINT rotating_tokens_expire CHECK (refresh_token IS NULL OR token_expires_at IS NOT NULL)
);

-- One-time states of OAuth, before their workspace is known: the tenant "installing".
CREATE TABLE install_states (
    workspace_id text NOT NULL,
    state_sha256 text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, state_sha256)
);

-- When each Slack method may be called next for a workspace; shared by all workers.
CREATE TABLE pacing (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    method text NOT NULL,
    next_at timestamptz NOT NULL DEFAULT now(),
    -- Times in a row that Slack answered "too many calls".
    refusals integer NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, method)
);

-- How far a channel's history is read. Newest first; the cursor moves in the transaction that
-- stores the page. The state tells of the first reading of everything; a complete channel stays
-- complete while a later pass reads it again. next_at is infinite while nothing can be read: the
-- app's token is no longer valid.
CREATE TABLE channel_history (
    workspace_id text NOT NULL,
    channel_id text NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    -- When the channel was made, if Slack told it: where its history begins.
    begins_at timestamptz,
    pass_number integer NOT NULL DEFAULT 0,
    -- The pass in progress: 'full' reads down to oldest_ts or the beginning, 'recent' to oldest_ts;
    -- empty when there is none. latest_ts bounds it above once a cursor was lost.
    open_pass text NOT NULL DEFAULT '',
    pass_began_at timestamptz,
    -- When the last finished pass began: all before it was looked for.
    looked_at timestamptz,
    latest_ts text NOT NULL DEFAULT '',
    oldest_ts text NOT NULL DEFAULT '',
    cursor text NOT NULL DEFAULT '',
    read_down_to_ts text NOT NULL DEFAULT '',
    -- Pages and their messages, over all passes; and pages of the first pass.
    pages_read bigint NOT NULL DEFAULT 0,
    messages_read bigint NOT NULL DEFAULT 0,
    first_pass_pages bigint NOT NULL DEFAULT 0,
    -- When the channel had its last turn; who waited longest is next.
    read_at timestamptz,
    completed_at timestamptz,
    reconciled_at timestamptz,
    -- When a complete channel is due to be read again.
    reconcile_at timestamptz NOT NULL DEFAULT 'infinity',
    attempts integer NOT NULL DEFAULT 0,
    next_at timestamptz NOT NULL DEFAULT now(),
    last_error text NOT NULL DEFAULT '',
    failed_at timestamptz,
    PRIMARY KEY (workspace_id, channel_id),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE,
    CONSTRAINT history_states_are_known CHECK (
        state IN ('waiting', 'reading', 'complete', 'failed', 'left')
    ),
    CONSTRAINT passes_are_known CHECK (open_pass IN ('', 'full', 'recent'))
);

-- Threads whose replies are to be read, or read again because new replies may have come. Replies
-- come oldest first. latest_reply_ts and reply_count are what the root last told.
CREATE TABLE thread_history (
    workspace_id text NOT NULL,
    channel_id text NOT NULL,
    root_ts text NOT NULL,
    state text NOT NULL DEFAULT 'waiting',
    latest_reply_ts text NOT NULL DEFAULT '',
    reply_count integer NOT NULL DEFAULT 0,
    cursor text NOT NULL DEFAULT '',
    -- Bounds what is read below once a cursor was lost.
    oldest_ts text NOT NULL DEFAULT '',
    read_up_to_ts text NOT NULL DEFAULT '',
    -- Asked for by a repeated pass: stored replies that Slack shows no more were deleted.
    is_again boolean NOT NULL DEFAULT false,
    -- When it had its last turn; null again when it is to be read again.
    read_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    next_at timestamptz NOT NULL DEFAULT now(),
    last_error text NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, channel_id, root_ts),
    FOREIGN KEY (workspace_id, channel_id) REFERENCES channels ON DELETE CASCADE,
    CONSTRAINT thread_states_are_known CHECK (state IN ('waiting', 'complete', 'failed'))
);
CREATE INDEX threads_to_read ON thread_history (workspace_id, read_at NULLS FIRST, root_ts DESC)
    WHERE state <> 'complete';

-- Recorded before something is posted and after, so that a crash between is resolved by looking.
CREATE TABLE deliveries (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    delivery_id text NOT NULL,
    -- The command job that it answers, and which of its posts it is ("answer", "share", …).
    job_id text NOT NULL,
    purpose text NOT NULL DEFAULT 'answer',
    claim_number bigint NOT NULL,
    state text NOT NULL DEFAULT 'begun',
    channel_id text NOT NULL DEFAULT '',
    person_id text NOT NULL DEFAULT '',
    -- Where it was posted, when the place can be looked at.
    message_ts text NOT NULL DEFAULT '',
    -- Ids of the cited messages with their content hash: no text.
    evidence jsonb NOT NULL DEFAULT '[]',
    outcome text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    begun_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (workspace_id, delivery_id),
    UNIQUE (workspace_id, job_id, purpose),
    CONSTRAINT delivery_states_are_known CHECK (
        state IN ('begun', 'delivered', 'suppressed', 'failed', 'in_doubt')
    ),
    CONSTRAINT finished_deliveries_say_when CHECK ((state = 'begun') = (finished_at IS NULL))
);

-- "Helpful" and "Not helpful": labels for calibration.
CREATE TABLE feedback (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    delivery_id text NOT NULL,
    person_id text NOT NULL,
    is_helpful boolean NOT NULL,
    question text NOT NULL,
    message_ids text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, delivery_id, person_id)
);

-- Declared by people: the newer message replaces what the older one says.
CREATE TABLE corrections (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    message_id text NOT NULL,
    corrected_by_id text NOT NULL,
    declared_by text NOT NULL DEFAULT '',
    declared_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, message_id, corrected_by_id),
    CONSTRAINT nothing_corrects_itself CHECK (message_id <> corrected_by_id)
);

-- What a purge deleted, in numbers. Outlives its workspace, so no foreign key; holds no text.
CREATE TABLE purge_reports (
    workspace_id text NOT NULL,
    purge_id text NOT NULL,
    scope text NOT NULL,
    -- The channel of a channel's purge; empty for a whole workspace.
    channel_id text NOT NULL DEFAULT '',
    -- Messages of the channel up to this ts do not come back until the app joins it anew.
    hold_ts text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    deleted jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, purge_id)
);
CREATE UNIQUE INDEX one_open_purge ON purge_reports (workspace_id, scope)
    WHERE finished_at IS NULL;

DO $$
DECLARE
    tenant_table text;
BEGIN
    FOREACH tenant_table IN ARRAY ARRAY[
        'installations', 'install_states', 'pacing', 'channel_history', 'thread_history',
        'deliveries', 'feedback', 'corrections', 'purge_reports'
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

-- Retrieve reads corrections for the trust gate and nothing else of these.
GRANT SELECT ON corrections TO recall_retrieve;

-- The queue role spaces calls across tenants and finds what is due.
CREATE POLICY queue ON pacing TO recall_queue USING (true) WITH CHECK (true);
CREATE POLICY queue ON installations FOR SELECT TO recall_queue USING (true);
CREATE POLICY queue ON channel_history FOR SELECT TO recall_queue USING (true);
CREATE POLICY queue ON thread_history FOR SELECT TO recall_queue USING (true);
GRANT SELECT, INSERT, UPDATE ON pacing TO recall_queue;
-- Never the tokens.
GRANT SELECT (workspace_id, installation_id, team_id, enterprise_id, is_enterprise_install, app_id,
    bot_user_id, installed_at) ON installations TO recall_queue;
GRANT SELECT ON channel_history, thread_history TO recall_queue;
