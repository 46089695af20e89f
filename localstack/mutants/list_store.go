package mutants

const (
	fenceFile       = "idem/dynamo/fence.go"
	conditionFile   = "idem/dynamo/condition.go"
	transactionFile = "idem/dynamo/transaction.go"
	cancelFile      = "idem/dynamo/cancel.go"
	errorsFile      = "idem/dynamo/errors.go"
	settleFile      = "idem/dynamo/settle.go"
	storeFile       = "idem/dynamo/store.go"
	recordFile      = "idem/storage/record.go"
	rowFile         = "idem/storage/message.go"
)

// fences: each clause of a condition keeps somebody's late write out.
var fences = []Mutant{
	{Name: "a decision holds for whatever revision is stored", File: fenceFile, Old: `"#op = :operation AND #rv = :revision"`, New: `"#op = :operation AND attribute_exists(#rv)"`},
	{Name: "a decision holds for another incarnation", File: fenceFile, Old: `seenRow = "#op = :operation AND #rv`, New: `seenRow = "attribute_exists(#op) AND #rv`},
	{Name: "a holder's write lands over another owner's", File: fenceFile, Old: `owned   = "#ow = :owner AND "`, New: `owned   = "attribute_exists(#ow) AND "`},
	{Name: "a holder's write lands in a later epoch", File: fenceFile, Old: `" AND #ep = :epoch"`, New: `" AND #ep >= :epoch"`},
	{Name: "a key is free before its time", File: fenceFile, Old: `"#ea <= :now AND #st`, New: `"attribute_exists(#ea) AND #st`},
	{Name: "a key is free on the instant after its time", File: fenceFile, Old: `"#ea <= :now AND #st`, New: `"#ea < :now AND #st`},
	{Name: "a row of another schema is free", File: fenceFile, Old: `AND #sv = :version"`, New: `AND attribute_exists(#sv)"`},
	{Name: "a pending record frees its key", File: fenceFile, Old: `":completed": stringValue(string(storage.StateCompleted))`, New: `":completed": stringValue(string(storage.StatePending))`},
	{Name: "a renewal shortens a lease", File: fenceFile, Old: `#lu < :lease)"`, New: `#lu <> :lease)"`},
	{Name: "a fence without a lease's end", File: fenceFile, Old: `	return text + " AND " + leaseOver`, New: `	return text`},
	{Name: "any epoch is as good as its own", File: fenceFile, Old: `	case s.anyEpoch:
		return text`, New: `	case s.anyEpoch || true:
		return text`},
	{Name: "an update makes a row that is not there", File: fenceFile, Old: `	if f.AdmitsAbsence() {
		return`, New: `	if f.AdmitsAbsence() && false {
		return`},
	{Name: "evidence settles what is final", File: conditionFile, Old: "	if f.Open {\n		alternatives = append(alternatives, *all(readableMessage(e), in(e, schema.State, openStates...)))", New: "	if f.Open {\n		alternatives = append(alternatives, readableMessage(e))"},
	{Name: "a dead message is no open one", File: conditionFile, Old: "storage.MessageEvidenced, storage.MessageDead,\n", New: "storage.MessageEvidenced,\n"},
	{Name: "a message's claim holds in any epoch", File: conditionFile, Old: "e.is(schema.Owner, w.item), e.is(schema.Epoch, w.item), in(", New: "e.is(schema.Owner, w.item), in("},
	{Name: "a message's claim is anybody's", File: conditionFile, Old: "e.is(schema.Owner, w.item), e.is(schema.Epoch, w.item), in(", New: "e.is(schema.Epoch, w.item), in("},
	{Name: "what is not to be dead may be dead", File: conditionFile, Old: "	if f.NotDead {", New: "	if f.NotDead && false {"},
	{Name: "a check admits a record that has its answer", File: conditionFile, Old: "all(operation+\" = \"+value, in(e, schema.State, storage.StatePending))", New: "all(operation + \" = \" + value)"},
	{Name: "a check admits another incarnation", File: conditionFile, Old: "all(operation+\" = \"+value, in(e,", New: "all(in(e,"},
	{Name: "another release's message is open for evidence", File: conditionFile, Old: "*all(readableMessage(e), in(e, schema.State, openStates...))", New: "in(e, schema.State, openStates...)"},
}

// transactions: what goes together, and under which token.
var transactions = []Mutant{
	{Name: "a message overwrites one that is there", File: transactionFile, Old: "ConditionExpression: all(e.absent(messageKey)),\n		ExpressionAttributeNames:            e.names,", New: "ConditionExpression: all(\"(\" + e.absent(messageKey) + \" OR attribute_exists(\" + e.name(messageKey) + \"))\"),\n		ExpressionAttributeNames:            e.names,"},
	{Name: "a conflict does not say what is stored", File: transactionFile, Old: `		TableName: &s.cfg.IdempotencyTable, Item: it, ConditionExpression: c.text,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,`, New: `		TableName: &s.cfg.IdempotencyTable, Item: it, ConditionExpression: c.text,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,`},
	{Name: "a commit has no token", File: transactionFile, Old: "	input.ClientRequestToken = &token\n", New: "	_ = token\n"},
	{Name: "a commit leaves its business writes out", File: transactionFile, Old: "	return t, s.resolve(t, c.Writes)", New: "	return t, nil"},
	{Name: "a commit leaves its messages out", File: transactionFile, Old: "	for i, m := range c.Messages {", New: "	for i, m := range c.Messages[:0] {"},
	{Name: "a commit ignores its fence", File: transactionFile, Old: "	if c.Fence != nil {", New: "	if c.Fence != nil && false {"},
	{Name: "a response's chunks are left out", File: transactionFile, Old: "	t.putChunks(s, chunks)\n	if err := declared", New: "	_ = chunks\n	if err := declared"},
	{Name: "chunks are joined with the record of another execution", File: "idem/dynamo/chunk.go", Old: "	case r.ChunksDigest != string(digest):\n", New: "	case r.ChunksDigest != string(digest) && false:\n"},
	{Name: "a message on DynamoDB is postponed to no time", File: "idem/dynamo/message.go", Old: "	if at.IsZero() {\n", New: "	if at.IsZero() && doing == \"\" {\n"},
	{Name: "what is read may be old", File: storeFile, Old: "ConsistentRead: aws.Bool(true)", New: "ConsistentRead: aws.Bool(false)"},
	{Name: "a scope's mark overwrites another", File: "idem/dynamo/mark.go", Old: "condition{e, all(e.absent(recordKey))}", New: "condition{e, all(\"(\" + e.absent(recordKey) + \" OR attribute_exists(\" + e.name(recordKey) + \"))\")}"},
	{Name: "an earlier time replaces a later RefuseBefore", File: "idem/dynamo/loss.go", Old: `" < " + e.value`, New: `" > " + e.value`},
}

// replies: what an error says of what happened.
var replies = []Mutant{
	{Name: "a lost reply says that nothing happened", File: errorsFile, Old: "	case isAmbiguous(err):\n		return &storage.OutcomeUnknownError{Cause: err}", New: "	case isAmbiguous(err):\n		return &storage.NotAskedError{Cause: err}"},
	{Name: "a transaction in progress is a conflict", File: errorsFile, Old: "	if isOneOf(err, inProgress) || isOneOf", New: "	if isOneOf"},
	{Name: "a server's error is definite", File: errorsFile, Old: "status < http.StatusInternalServerError", New: "status < http.StatusInternalServerError+100"},
	{Name: "an error without a code is definite", File: errorsFile, Old: "	if !errors.As(err, &api) {\n		return true\n	}\n	if isOneOf", New: "	if !errors.As(err, &api) {\n		return false\n	}\n	if isOneOf"},
	{Name: "an answer without a code is DynamoDB's refusal", File: errorsFile, Old: " || isOneOf(err, withoutCode)", New: ""},
	{Name: "a proxy that did not wait says that nothing happened", File: errorsFile, Old: " &&\n		status != http.StatusRequestTimeout && status != statusGivenUp", New: ""},
	{Name: "a redirection is a refusal", File: errorsFile, Old: "return status >= http.StatusBadRequest && status", New: "return status"},
	{Name: "a conflict with another Region's write is fatal", File: errorsFile, Old: "(*types.TransactionConflictException)(nil).ErrorCode(), (*types.ReplicatedWriteConflictException)(nil).ErrorCode(),", New: "(*types.TransactionConflictException)(nil).ErrorCode(),"},
	{Name: "credentials that have expired in other words are refused", File: errorsFile, Old: `{"ExpiredTokenException", "ExpiredToken"}`, New: `{"ExpiredTokenException"}`},
	{Name: "credentials that have expired leave a commit unclear", File: errorsFile, Old: " || isOneOf(err, expiredCredentials):", New: ":"},
	{Name: "a business condition decides before the record's", File: cancelFile, Old: "	for i, reason := range own {\n		if text(reason.Code) == reasonConditionFailed {\n			return", New: "	for i, reason := range own {\n		if text(reason.Code) == reasonConditionFailed && !slices.ContainsFunc(writes, notJudged) {\n			return"},
	{Name: "only the first failed write is named", File: cancelFile, Old: "			failed = append(failed, i)", New: "			failed = append(failed[:0], i)"},
	{Name: "what was not judged is not told", File: cancelFile, Old: "Unjudged: unjudged, OwnUnjudged", New: "OwnUnjudged"},
	{Name: "what was not judged of its own is not told", File: cancelFile, Old: "OwnUnjudged: slices.ContainsFunc(own, notJudged)}", New: "OwnUnjudged: false}"},
	{Name: "a conflict between transactions is fatal", File: cancelFile, Old: "		case reasonConflict:\n			positions = append(positions, i)\n", New: ""},
	{Name: "a throttle within a transaction is fatal", File: cancelFile, Old: "		case reasonThrottling, reasonThroughput:\n			throttled = true\n			positions = append(positions, i)", New: "		case reasonThrottling, reasonThroughput:\n			throttled = true"},
	{Name: "reasons are read by another order", File: cancelFile, Old: "	if len(reasons) != len(t.items) {", New: "	if len(reasons) < len(t.items) {"},
}

// settlements: how an operation ends.
var settlements = []Mutant{
	{Name: "a settlement ends a record that has its answer", File: settleFile, Old: "all(e.is(schema.OperationID, w.item), e.is(schema.State, w.item))", New: "all(e.is(schema.OperationID, w.item))"},
	{Name: "a settlement ends another incarnation's record", File: settleFile, Old: "all(e.is(schema.OperationID, w.item), e.is(schema.State, w.item))", New: "all(e.is(schema.State, w.item))"},
	{Name: "a settlement leaves its record pending", File: settleFile, Old: "	if settlement.Record != nil {", New: "	if settlement.Record != nil && false {"},
	{Name: "a settlement leaves the next message out", File: settleFile, Old: "	if settlement.Next != nil {", New: "	if settlement.Next != nil && false {"},
	{Name: "a settlement leaves its writes out", File: settleFile, Old: "	return t, s.resolve(t, settlement.Writes)", New: "	return t, nil"},
	{Name: "a settlement depends on no check", File: settleFile, Old: "	if settlement.Check != nil {", New: "	if settlement.Check != nil && false {"},
	{Name: "a settled message keeps its place in the queue", File: settleFile, Old: "schema.LastOutcome, schema.Queue, schema.QueueAt,\n", New: "schema.LastOutcome,\n"},
	{Name: "a settled record is kept by its old time", File: settleFile, Old: "schema.LastError, schema.TTL}, response", New: "schema.LastError}, response"},
	{Name: "a settled record's key is free by its old time", File: settleFile, Old: "schema.DoneAt, schema.FreeAt, schema.AnswersUntil", New: "schema.DoneAt, schema.AnswersUntil"},
	{Name: "evidence that is kept is not written", File: settleFile, Old: "{schema.KeptDelivered, schema.KeptDeclined, schema.TTL, schema.Unfailed}", New: "{schema.TTL, schema.Unfailed}"},
}

// removals: what the native TTL may remove. A story misses a row that is gone too early.
var removals = []Mutant{
	{Name: "the TTL removes what is unknown", File: recordFile, Old: "r.State == StateFailedRetryable, r.State == StateInProgress && r.mayRunAgain():", New: "r.State == StateFailedRetryable, r.State == StateUnknown, r.State == StateInProgress && r.mayRunAgain():"},
	{Name: "the TTL removes an answer that is still promised", File: recordFile, Old: "		return r.keptUntil().Add(recordOutlives), !r", New: "		return r.DoneAt, !r"},
	{Name: "the TTL removes a key on the instant at which it is free", File: recordFile, Old: "		return r.keptUntil().Add(recordOutlives), !r", New: "		return r.keptUntil(), !r"},
	{Name: "the TTL removes a lease as soon as it is over", File: recordFile, Old: "		return r.LeaseUntil.Add(r.Retention + recordOutlives), true", New: "		return r.LeaseUntil, true"},
	{Name: "what was freed is new at once", File: "idem/protocol/record.go", Old: "now+r.retention(c); c.off", New: "now+1; c.off"},
	{Name: "nobody is told of a handler's record that is unknown", File: "idem/outbox/record.go", Old: "			r.logRecord(ctx, levelError, \"idempotency.reconcile.failed\"", New: "			r.logRecord(ctx, slog.LevelInfo, \"idempotency.reconcile.failed\""},
	{Name: "the TTL removes messages with their record", File: rowFile, Old: "const messageOutlives = 24 * time.Hour", New: "const messageOutlives = 0"},
}

// removalsOfLeases: of what no sweep has looked at for an hour. Few stories are so long in trouble.
var removalsOfLeases = []Mutant{
	{Name: "the TTL removes a wrapped handler's lease", File: recordFile, Old: "r.State == StateFailedRetryable, r.State == StateInProgress && r.mayRunAgain():", New: "r.State == StateFailedRetryable, r.State == StateInProgress:"},
}
