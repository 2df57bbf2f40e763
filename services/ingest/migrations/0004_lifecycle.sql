-- Life of generations: what tells that one has caught up, and the seal on fixed content.

-- When the bulk of a live generation was written; what came later came with the traffic.
ALTER TABLE generations ADD COLUMN filled_at timestamptz;
-- When the chunk was written: tells how long it waits for its vector.
ALTER TABLE vectors_384 ADD COLUMN written_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE vectors_1536 ADD COLUMN written_at timestamptz NOT NULL DEFAULT now();

-- Seal ------------------------------------------------------------------------------------------
-- What a sealed generation holds changes only while it is built; from its validation on it is what
-- was validated. Two things may still delete: the clearing of one that serves nobody any more, and
-- an erasure, which says so in its transaction (SET LOCAL recall.erasure = 'on').
-- By statement, so that a live write pays for one look at the generations it touched and not for
-- one a row. The row of a sealed generation is locked, so that its state can not change between
-- this look and the commit: a validation sees everything that was written or the writer fails.

CREATE FUNCTION refuse_sealed_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sealed record;
BEGIN
    IF TG_OP <> 'INSERT' AND current_setting('recall.erasure', true) = 'on' THEN
        RETURN NULL;
    END IF;
    FOR sealed IN
        SELECT g.generation_id, g.state
        FROM generations AS g
        WHERE (g.workspace_id, g.generation_id) IN (
                SELECT workspace_id, generation_id FROM changed
            )
            AND g.kind = 'sealed'
        ORDER BY g.workspace_id, g.generation_id
        FOR SHARE
    LOOP
        IF sealed.state <> 'building'
            AND NOT (TG_OP = 'DELETE' AND sealed.state IN ('retired', 'failed')) THEN
            RAISE EXCEPTION 'generation % is sealed: % of % refused',
                sealed.generation_id, TG_OP, TG_TABLE_NAME
                USING ERRCODE = 'object_not_in_prerequisite_state';
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

DO $$
DECLARE
    sealed_table text;
BEGIN
    FOREACH sealed_table IN ARRAY ARRAY[
        'chunks', 'chunk_messages', 'chunk_terms', 'vectors_384', 'vectors_1536', 'sources',
        'source_pieces', 'supersessions', 'document_relations'
    ] LOOP
        EXECUTE format(
            'CREATE TRIGGER sealed_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed '
            'FOR EACH STATEMENT EXECUTE FUNCTION refuse_sealed_change()', sealed_table);
        EXECUTE format(
            'CREATE TRIGGER sealed_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS changed '
            'FOR EACH STATEMENT EXECUTE FUNCTION refuse_sealed_change()', sealed_table);
        EXECUTE format(
            'CREATE TRIGGER sealed_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed '
            'FOR EACH STATEMENT EXECUTE FUNCTION refuse_sealed_change()', sealed_table);
    END LOOP;
END $$;
