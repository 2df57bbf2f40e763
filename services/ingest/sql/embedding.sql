-- name: read_generation
SELECT embedder_fingerprint, width
FROM generations
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s

-- name: read_missing
WITH missing AS MATERIALIZED (
    SELECT chunk_id
    FROM vectors_{width}
    WHERE workspace_id = %(workspace_id)s
        AND generation_id = %(generation_id)s
        AND chunk_id > %(after_chunk_id)s
        AND embedding IS NULL
        AND skipped IS NULL
    ORDER BY chunk_id
    LIMIT %(limit)s
)
SELECT chunks.chunk_id, chunks.text_sha256, chunks.text
FROM missing
JOIN chunks
    ON chunks.workspace_id = %(workspace_id)s
    AND chunks.generation_id = %(generation_id)s
    AND chunks.chunk_id = missing.chunk_id
ORDER BY chunks.chunk_id

-- name: read_cached
SELECT text_sha256, vector
FROM embedding_cache
WHERE workspace_id = %(workspace_id)s
    AND embedder_fingerprint = %(fingerprint)s
    AND text_sha256 = ANY(%(text_sha256s)s)

-- name: fill
-- The chunk's row is locked before its vector is written, so that the text can not change between
-- the comparison and the commit. Rows that a writer holds are left for the next round: waiting for
-- them could deadlock with a writer that locks in another order. The ids stand in every condition:
-- on tables without statistics the planner would else read the whole generation for each batch.
WITH given AS (
    SELECT *
    FROM unnest(
        %(chunk_ids)s::text[], %(text_sha256s)s::text[], %(embeddings)s::text[], %(skipped)s::text[]
    ) AS given (chunk_id, text_sha256, embedding, skipped)
),
current AS (
    SELECT chunks.chunk_id, chunks.text_sha256, given.embedding, given.skipped
    FROM given
    JOIN chunks
        ON chunks.workspace_id = %(workspace_id)s
        AND chunks.generation_id = %(generation_id)s
        AND chunks.chunk_id = given.chunk_id
        AND chunks.chunk_id = ANY(%(chunk_ids)s)
        AND chunks.text_sha256 = given.text_sha256
    JOIN vectors_{width} AS vectors
        ON vectors.workspace_id = chunks.workspace_id
        AND vectors.generation_id = chunks.generation_id
        AND vectors.chunk_id = chunks.chunk_id
        AND vectors.chunk_id = ANY(%(chunk_ids)s)
        AND vectors.embedding IS NULL
        AND vectors.skipped IS NULL
    FOR SHARE OF chunks SKIP LOCKED
    FOR UPDATE OF vectors SKIP LOCKED
)
UPDATE vectors_{width} AS vectors SET
    embedding = current.embedding::vector({width}),
    skipped = current.skipped
FROM current
WHERE vectors.workspace_id = %(workspace_id)s
    AND vectors.generation_id = %(generation_id)s
    AND vectors.chunk_id = ANY(%(chunk_ids)s)
    AND vectors.chunk_id = current.chunk_id
RETURNING current.text_sha256

-- name: write_cache
INSERT INTO embedding_cache (workspace_id, embedder_fingerprint, text_sha256, vector)
SELECT %(workspace_id)s, %(fingerprint)s, given.text_sha256, given.vector
FROM unnest(%(text_sha256s)s::text[], %(vectors)s::bytea[]) AS given (text_sha256, vector)
ON CONFLICT (workspace_id, embedder_fingerprint, text_sha256) DO NOTHING
