export { Client, type Options, type Send } from "./client.ts";
export {
  AnswerTooLongError, ConfigError, ExpiredError, GaveUpError, IdempotencyError, JournalError, KeyError, MismatchError, OutcomeUnknownError, ResponseError,
  type ErrorCode, type Reason,
} from "./errors.ts";
export { MemoryJournal, type Begun, type Entry, type Journal } from "./journal.ts";
export { mintKey, type Syntax } from "./key.ts";
