-- The tables of the store. The application's own tables stand beside them in the same database, because its writes are a
-- part of the store's transactions.
--
-- Times are null where the contract says "zero". Keys sort by bytes (collation "C"), so that pages of a queue have one
-- order on every server. Spans of time are in milliseconds.

-- One row for each scope: whoever locks it decides about the key.
create table idem_records (
  key                   text collate "C" primary key,
  state                 text not null,          -- in_progress, pending, completed, failed, failed_retryable, unknown
  operation_id          text not null,          -- the incarnation: fences compare it
  epoch                 bigint not null,
  owner                 text not null,          -- the execution that holds or held the record
  revision              text not null,          -- the write that made the row: fences compare it
  lease_until           timestamptz,
  look_at               timestamptz,            -- place in the queue, where that is not lease_until

  tenant                text not null,
  operation             text not null,
  kind                  text not null,          -- atomic, optimistic, deferred, wrapped
  principal             text not null,
  safe_to_run_again     boolean not null,
  observed              boolean not null,

  fingerprint_version   integer not null,
  fingerprint_secret    text not null,
  fingerprint_selection text not null,
  fingerprint           bytea not null,
  fingerprint_parts     bytea not null,

  response_status       integer not null,       -- 0 is no response
  response_header       text not null,          -- a line for each field, "name": "value", quoted as Go does
  response_body         bytea,
  sealed                boolean not null,
  record_only           boolean not null,

  created_at            timestamptz,
  done_at               timestamptz,
  expires_at            timestamptz,            -- until when the record answers
  free_at               timestamptz,            -- from when another request may replace it
  retention_ms          bigint not null,
  keep_for_ms           bigint not null,
  gone                  boolean not null,
  resource_backed       boolean not null,
  attempts              integer not null,
  last_error            text not null,
  trace                 bytea,
  schema_version        integer not null,

  -- What the store derives at each write, for the indexes below.
  queue                 text,                   -- lease or unknown; null for a record that is in no queue
  queue_at              timestamptz,
  remove_after          timestamptz             -- from when Purge may delete the row; null is never
);
create index idem_records_queue  on idem_records (queue, queue_at, key) where queue is not null;
create index idem_records_remove on idem_records (remove_after) where remove_after is not null;

-- The outbox: one row for each effect that was asked for.
create table idem_messages (
  id                       text collate "C" primary key,
  index                    integer not null,
  operation_id             text not null,
  record_key               text not null,
  tenant                   text not null,
  topic                    text not null,
  payload                  bytea,
  sealed                   boolean not null,

  state                    text not null,       -- pending, claimed, delivered, declined, unknown, evidenced, dead, cancelled
  epoch                    bigint not null,
  owner                    text not null,
  revision                 text not null,
  lease_until              timestamptz,

  created_at               timestamptz,
  first_claimed_at         timestamptz,
  next_attempt_at          timestamptz,
  sweep_at                 timestamptz,
  open_since               timestamptz,
  done_at                  timestamptz,
  redriven_at              timestamptz,
  cleared_at               timestamptz,
  remove_at                timestamptz,

  attempts                 integer not null,
  died                     integer not null,
  refused                  boolean not null,
  unfailed                 boolean not null,
  undoes                   boolean not null,
  retention_ms             bigint not null,
  keep_for_ms              bigint not null,
  gone                     boolean not null,
  resource_backed          boolean not null,
  detached                 boolean not null,
  reference                text not null,
  last_outcome             text not null,
  settled_by               text not null,
  kept_delivered           bytea,               -- evidence; null where none is kept
  kept_delivered_reference text,
  kept_declined            bytea,
  kept_declined_reference  text,
  trace                    bytea,
  schema_version           integer not null,

  queue                    text,                -- offer, unknown or dead; null for a message that is final
  queue_at                 timestamptz,
  remove_after             timestamptz          -- remove_at, once the message is final
);
create index idem_messages_queue  on idem_messages (queue, queue_at, id) where queue is not null;
create index idem_messages_remove on idem_messages (remove_after) where remove_after is not null;

-- Transactions that were committed, by their client request token: one that is sent again finds itself here.
create table idem_tokens (
  token   text primary key,
  content bytea not null,                       -- SHA-256 of what was sent under the token
  sent_at timestamptz not null
);
create index idem_tokens_sent on idem_tokens (sent_at);

-- What belongs to no record: scope-mark, refuse-before (milliseconds since 1970), and place.<name> for each place where a run
-- of a sweep stopped.
create table idem_values (
  name  text primary key,
  value text not null
);
