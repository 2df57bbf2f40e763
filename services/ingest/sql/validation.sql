-- name: count_live
-- What a live generation was read back from: the messages it follows, and its chunks.
SELECT
    (SELECT count(*) FROM messages WHERE workspace_id = %(workspace_id)s),
    (
        SELECT count(*) FROM chunks
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    )

-- name: count_sealed
SELECT
    (
        SELECT count(*) FROM sources
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    ),
    (
        SELECT count(*) FROM chunks
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    )

-- name: changed_texts
-- A chunk's text is the one that its vector was asked for.
SELECT chunk_id
FROM chunks
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND text_sha256 <> encode(sha256(convert_to(text, 'UTF8')), 'hex')
ORDER BY chunk_id

-- name: unusable_vectors
-- A vector that is not finite, of the wrong width, or without a direction has no cosine.
SELECT chunk_id
FROM vectors_{width}
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND embedding IS NOT NULL
    AND NOT (
        vector_dims(embedding) = %(width)s
        AND vector_norm(embedding) > 0
        AND vector_norm(embedding) < 'infinity'
    )
ORDER BY chunk_id

-- name: waiting_vectors
SELECT chunk_id
FROM vectors_{width}
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND embedding IS NULL
    AND skipped IS NULL
ORDER BY chunk_id

-- name: skipped_vectors
SELECT chunk_id
FROM vectors_{width}
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND embedding IS NULL
    AND skipped IS NOT NULL
ORDER BY chunk_id

-- name: chunks_without_rows
SELECT chunk_id FROM chunks
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
EXCEPT (
    SELECT chunk_id FROM chunk_terms
    WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    INTERSECT
    SELECT chunk_id FROM vectors_{width}
    WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    INTERSECT
    SELECT chunk_id FROM chunk_messages
    WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
)
ORDER BY chunk_id

-- name: pieces_without_chunk
SELECT message_id FROM source_pieces
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
EXCEPT
SELECT message_id FROM chunk_messages
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
ORDER BY message_id

-- name: chunks_without_piece
SELECT chunk_id FROM chunk_messages
WHERE workspace_id = %(workspace_id)s
    AND generation_id = %(generation_id)s
    AND message_id NOT IN (
        SELECT message_id FROM source_pieces
        WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
    )
ORDER BY chunk_id

-- name: read_sources
SELECT source_uri, path, version_id, media_type, size, sha256
FROM sources
WHERE workspace_id = %(workspace_id)s AND generation_id = %(generation_id)s
ORDER BY source_uri

-- name: smoke_chunk
-- Ids are hashes, so the first thousand are a sample; of these a long one, for its many words.
SELECT c.chunk_id, c.text, c.channel_id, t.posted_from, t.posted_until
FROM (
    SELECT chunk_id
    FROM vectors_{width}
    WHERE workspace_id = %(workspace_id)s
        AND generation_id = %(generation_id)s
        AND embedding IS NOT NULL
    ORDER BY chunk_id
    LIMIT 1000
) AS sample
INNER JOIN chunk_terms AS t
    ON t.workspace_id = %(workspace_id)s
    AND t.generation_id = %(generation_id)s
    AND t.chunk_id = sample.chunk_id
INNER JOIN chunks AS c
    ON c.workspace_id = %(workspace_id)s
    AND c.generation_id = %(generation_id)s
    AND c.chunk_id = sample.chunk_id
ORDER BY least(length(c.text), 400) DESC, c.chunk_id
LIMIT 1

-- name: embedded_text
SELECT c.text
FROM chunks AS c
INNER JOIN vectors_{width} AS v
    ON v.workspace_id = c.workspace_id
    AND v.generation_id = c.generation_id
    AND v.chunk_id = c.chunk_id
WHERE c.workspace_id = %(workspace_id)s
    AND c.generation_id = %(generation_id)s
    AND c.chunk_id = %(chunk_id)s
    AND v.embedding IS NOT NULL
