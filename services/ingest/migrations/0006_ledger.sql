-- The ledger loses rows only to a purge or an erasure, which says so in its transaction
-- (SET LOCAL recall.erasure = 'on').

CREATE FUNCTION refuse_loss() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('recall.erasure', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER never_lost BEFORE DELETE ON evidence_cards
    FOR EACH ROW EXECUTE FUNCTION refuse_loss();
CREATE TRIGGER never_lost BEFORE DELETE ON fact_events
    FOR EACH ROW EXECUTE FUNCTION refuse_loss();
