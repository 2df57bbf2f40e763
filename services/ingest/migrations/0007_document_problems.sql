-- What an author should mend in a document, told again when it is carried forward:
-- [{"line": …, "message": …}].
ALTER TABLE sources ADD COLUMN problems jsonb NOT NULL DEFAULT '[]';
