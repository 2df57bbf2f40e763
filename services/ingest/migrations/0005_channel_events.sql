-- ts of the newest events that told of a channel's name, and of its being archived; empty when a
-- listing told it. An older event that arrives later changes nothing.
ALTER TABLE channels ADD COLUMN named_ts text NOT NULL DEFAULT '';
ALTER TABLE channels ADD COLUMN archived_ts text NOT NULL DEFAULT '';
