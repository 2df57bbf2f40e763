-- name: read_chunks
-- A chunk without its rows beside it shows nulls, differs from what it should be, and is rebuilt.
SELECT
    c.generation_id, c.chunk_id, c.thread_root_id, c.text_sha256, t.channel_id, t.author_ids,
    t.posted_from, t.posted_until
FROM chunks AS c
LEFT JOIN chunk_terms AS t
    ON t.workspace_id = c.workspace_id
    AND t.generation_id = c.generation_id
    AND t.chunk_id = c.chunk_id
WHERE c.workspace_id = %(workspace_id)s AND c.thread_root_id = ANY (%(thread_root_ids)s::text[])

-- name: delete_chunks
DELETE FROM chunks
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND chunk_id = ANY (%(chunk_ids)s::text[])

-- name: delete_chunks_of_messages
DELETE FROM chunks AS c
USING (
    SELECT DISTINCT generation_id, chunk_id
    FROM chunk_messages
    WHERE workspace_id = %(workspace_id)s AND message_id = ANY (%(message_ids)s::text[])
) AS gone
WHERE c.workspace_id = %(workspace_id)s
    AND c.generation_id = gone.generation_id
    AND c.chunk_id = gone.chunk_id
RETURNING c.thread_root_id, c.text_sha256

-- name: insert_chunks
INSERT INTO chunks (
    workspace_id, generation_id, chunk_id, channel_id, thread_root_id, kind, text, text_sha256,
    token_count
)
SELECT
    %(workspace_id)s, %(generation_id)s, given.chunk_id, given.channel_id, given.thread_root_id,
    given.kind, given.text, given.text_sha256, given.token_count
FROM unnest(
    %(chunk_ids)s::text[], %(channel_ids)s::text[], %(thread_root_ids)s::text[],
    %(kinds)s::text[], %(texts)s::text[], %(text_sha256s)s::text[], %(token_counts)s::integer[]
) AS given (
    chunk_id, channel_id, thread_root_id, kind, text, text_sha256, token_count
)

-- name: insert_chunk_messages
INSERT INTO chunk_messages (workspace_id, generation_id, chunk_id, message_id, position)
SELECT
    %(workspace_id)s, %(generation_id)s, given.chunk_id, given.message_id, given.position
FROM unnest(
    %(chunk_ids)s::text[], %(message_ids)s::text[], %(positions)s::integer[]
) AS given (chunk_id, message_id, position)

-- name: insert_chunk_terms
-- A tsvector holds one megabyte at most; 100,000 characters never reach it.
-- The parser makes one word of a link, a path, a file name or an address, and takes a closing
-- bracket into a link ("ex.test/runbook)"). So the words inside stand behind it once more.
INSERT INTO chunk_terms (
    workspace_id, generation_id, chunk_id, channel_id, author_ids, posted_from, posted_until, terms
)
SELECT
    %(workspace_id)s, %(generation_id)s, given.chunk_id, given.channel_id,
    ARRAY(SELECT jsonb_array_elements_text(given.author_ids)), given.posted_from, given.posted_until,
    to_tsvector('simple', left(given.text, 100000)) || to_tsvector('simple', (
        SELECT coalesce(string_agg(regexp_replace(run, '[^[:alnum:]]+', ' ', 'g'), ' '), '')
        FROM regexp_split_to_table(left(given.text, 100000), '\s+') AS run
        WHERE run ~ '[[:alnum:]][./@][[:alpha:]]|[[:alpha:]][./@][[:alnum:]]'
    ))
FROM unnest(
    %(chunk_ids)s::text[], %(channel_ids)s::text[], %(author_ids)s::jsonb[],
    %(posted_from)s::timestamptz[], %(posted_until)s::timestamptz[], %(texts)s::text[]
) AS given (chunk_id, channel_id, author_ids, posted_from, posted_until, text)

-- name: insert_vectors
INSERT INTO vectors_{width} (
    workspace_id, generation_id, chunk_id, channel_id, author_ids, posted_from, posted_until,
    embedding
)
SELECT
    %(workspace_id)s, %(generation_id)s, given.chunk_id, given.channel_id,
    ARRAY(SELECT jsonb_array_elements_text(given.author_ids)), given.posted_from, given.posted_until,
    given.embedding::vector
FROM unnest(
    %(chunk_ids)s::text[], %(channel_ids)s::text[], %(author_ids)s::jsonb[],
    %(posted_from)s::timestamptz[], %(posted_until)s::timestamptz[], %(embeddings)s::text[]
) AS given (chunk_id, channel_id, author_ids, posted_from, posted_until, embedding)

-- name: read_cached_vectors
SELECT text_sha256, vector
FROM embedding_cache
WHERE workspace_id = %(workspace_id)s
    AND embedder_fingerprint = %(fingerprint)s
    AND text_sha256 = ANY (%(text_sha256s)s::text[])

-- name: forget_unused_vectors
DELETE FROM embedding_cache AS known
WHERE known.workspace_id = %(workspace_id)s
    AND known.text_sha256 = ANY (%(text_sha256s)s::text[])
    AND NOT EXISTS (
        SELECT FROM chunks AS c
        WHERE c.workspace_id = known.workspace_id AND c.text_sha256 = known.text_sha256
    )
