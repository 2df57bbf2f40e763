-- name: next_threads
-- Newest first; a thread is as new as its newest message.
SELECT thread_root_id, max(posted_at)
FROM messages
WHERE workspace_id = %(workspace_id)s
    AND (%(channel_id)s = '' OR channel_id = %(channel_id)s)
    AND (%(person_id)s = '' OR author_id = %(person_id)s)
GROUP BY thread_root_id
HAVING %(before_at)s::timestamptz IS NULL
    OR (max(posted_at), thread_root_id) < (%(before_at)s::timestamptz, %(before_root)s::text)
ORDER BY max(posted_at) DESC, thread_root_id DESC
LIMIT %(limit)s

-- name: follow_directory
-- A person's messages show the directory's name from now on; a bot keeps the name it posted under.
UPDATE messages
SET author_name = ''
WHERE workspace_id = %(workspace_id)s
    AND author_id = %(person_id)s
    AND thread_root_id = ANY (%(thread_root_ids)s::text[])
    AND author_name <> ''
    AND NOT is_bot

-- name: go_on_later
-- Not when it was asked for anew meanwhile: then it begins from the newest again.
UPDATE jobs
SET payload = %(payload)s::jsonb, wanted_again = true
WHERE workspace_id = %(workspace_id)s
    AND job_id = %(job_id)s
    AND claim_number = %(claim_number)s
    AND state = 'running'
    AND NOT wanted_again
