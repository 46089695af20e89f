package mutants

const (
	inputFile     = "idem/canonical/input.go"
	sumFile       = "idem/canonical/fingerprint.go"
	scopeFile     = "idem/scope.go"
	signatureFile = "idem/webhook/signature.go"
	verifyFile    = "idem/webhook/webhook.go"
	providerFile  = "idem/outbox/call/call.go"
	lookFile      = "idem/internal/lastlook/lastlook.go"
	answerFile    = "idem/middleware/answer.go"
	observeFile   = "idem/middleware/observe.go"
	envelopeFile  = "idem/seal/envelope.go"
	entryFile     = "idem/cache/entry.go"
	openFile      = "idem/operator/awsctl/open.go"
	auditFile     = "idem/operator/auditlog/auditlog.go"
)

// fingerprints: what makes two requests the same.
var fingerprints = []Mutant{
	{Name: "the body does not count", File: inputFile, Old: "	dst = appendField(dst, body)\n", New: ""},
	{Name: "the method does not count", File: inputFile, Old: "		dst = appendField(dst, in.Method)\n", New: ""},
	{Name: "the query does not count", File: inputFile, Old: "	for _, name := range names {", New: "	for _, name := range names[:0] {"},
	{Name: "the order of a query's names counts", File: inputFile, Old: "	slices.Sort(names)\n", New: ""},
	{Name: "fields run into each other", File: inputFile, Old: "	return append(appendNumber(dst, len(value)), value...)", New: "	return append(dst, value...)"},
	{Name: "the media type does not count", File: inputFile, Old: "	dst = appendField(dst, mediaType)\n", New: "	dst = appendField(dst, mediaType[:0])\n"},
	{Name: "no body is an empty JSON document", File: inputFile, Old: "		kind = bodyAbsent\n", New: "		kind = bodyJSON\n"},
	{Name: "the version is not told", File: inputFile, Old: "	dst = appendNumber(dst, 1)\n", New: "	dst = appendNumber(dst, 2)\n"},
	{Name: "any two fingerprints of a length are equal", File: sumFile, Old: "subtle.ConstantTimeCompare(f.Sum[:], other.Sum[:]) == 1", New: "subtle.ConstantTimeCompare(f.Sum[:16], other.Sum[:16]) == 1"},
	{Name: "fingerprints of two secrets are compared", File: sumFile, Old: " && f.KeyID == other.KeyID && ", New: " && "},
	{Name: "a stored fingerprint is compared by today's secret", File: sumFile, Old: "	return f.sum(stored.Version, stored.KeyID, in)", New: "	return f.sum(stored.Version, f.keyID, in)"},
	{Name: "a body of any size is read", File: sumFile, Old: "	if len(in.Body) > f.bodyBytesMax {", New: "	if len(in.Body) > f.bodyBytesMax<<10 {"},
}

// scopes: whose key it is.
var scopes = []Mutant{
	{Name: "tenants share their keys", File: scopeFile, Old: "appendPart(room[:0], s.Tenant)", New: `appendPart(room[:0], "")`},
	{Name: "operations share their keys", File: scopeFile, Old: "s.Tenant), s.Operation), s.Key)", New: `s.Tenant), ""), s.Key)`},
	{Name: "principals share their keys", File: scopeFile, Old: `	if s.Principal != "" {`, New: `	if s.Principal == "-" {`},
	{Name: "a scope's parts run into each other", File: scopeFile, Old: "append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)", New: "append(binary.BigEndian.AppendUint64(text, 0), part...)"},
	{Name: "records are named without the secret", File: scopeFile, Old: "	if len(secret) > 0 {", New: "	if len(secret) > 64 {"},
	{Name: "a request without a tenant is executed", File: scopeFile, Old: `	if s.Tenant == "" {`, New: `	if s.Tenant == "-" {`},
	{Name: "an empty key is everybody's", File: scopeFile, Old: `	if s.Key == "" {`, New: `	if s.Key == "-" {`},
	{Name: "another secret's records are not found, and executed again", File: "idem/secret.go", Old: "	case kept != markOf(e.cfg.ScopeSecret):\n		return unavailable(anotherSecret(kept))\n", New: ""},
}

// webhooks: who may settle an operation.
var webhooks = []Mutant{
	{Name: "a forged signature beside others passes", File: signatureFile, Old: "match = hmac.Equal(got[:], want) || match", New: "match = hmac.Equal(got[:], want) || match || len(s.sums) > 1"},
	{Name: "eight forged signatures pass", File: signatureFile, Old: "match = hmac.Equal(got[:], want) || match", New: "match = hmac.Equal(got[:], want) || match || len(s.sums) == signaturesMax"},
	{Name: "only the last signature counts", File: signatureFile, Old: "match = hmac.Equal(got[:], want) || match", New: "match = hmac.Equal(got[:], want)"},
	{Name: "the body is not signed", File: signatureFile, Old: "	mac.Write(body)\n", New: ""},
	{Name: "the time is not signed", File: signatureFile, Old: "	mac.Write([]byte(timestamp))\n", New: ""},
	{Name: "a header has any number of signatures", File: signatureFile, Old: " || len(s.sums) == signaturesMax {", New: " {"},
	{Name: "a second time replaces the first", File: signatureFile, Old: `ok = ok && s.timestamp == "" && s.stamp(value)`, New: `ok = ok && s.stamp(value)`},
	{Name: "a replaced webhook secret stays good", File: verifyFile, Old: "	case signed && !old:\n", New: "	case signed && (!old || true):\n"},
	{Name: "webhook secrets are good that were told before a freeze", File: "idem/webhook/renew.go", Old: "!clock.Within(thawed, now, s.age) {", New: "!clock.Within(thawed, now, s.age) && false {"},
	{Name: "an old webhook is taken again", File: verifyFile, Old: "	case signed && stale:\n		return ErrStale\n", New: ""},
	{Name: "a webhook of the future is taken", File: verifyFile, Old: "Sub(s.at).Abs() > v.cfg.Tolerance", New: "Sub(s.at) > v.cfg.Tolerance"},
	{Name: "what a renewed secret did not sign passes", File: verifyFile, Old: "	if !s.signs(fresh, body) {", New: "	if len(fresh) == 0 {"},
	{Name: "two headers are one", File: verifyFile, Old: "	if len(lines) != 1 {", New: "	if len(lines) < 1 {"},
	{Name: "a short secret is taken", File: verifyFile, Old: "		if len(secret) < secretBytesMin {", New: "		if len(secret) < 1 {"},
}

// quotas: who may begin.
var quotas = []Mutant{
	{Name: "a right of a window that is over admits somebody", File: "idem/quota/rate.go", Old: "	if r.window.span == window {\n		r.have++", New: "	if r.window.span >= window {\n		r.have++"},
	{Name: "a limit that was met before a freeze is met after it", File: "idem/quota/active.go", Old: "a.readHour == hour && clock.Within(now, a.fullAt, fullFor)", New: "now.Sub(a.fullAt) < fullFor"},
	{Name: "what the hours before a freeze had is believed after it", File: "idem/quota/active.go", Old: "!clock.Within(now, a.readAt, pastFor)", New: "now.Sub(a.readAt) >= pastFor"},
	{Name: "a right of an hour that is over admits somebody", File: "idem/quota/active.go", Old: "	if a.hour == hour {\n		a.have++", New: "	if a.hour >= hour {\n		a.have++"},
	{Name: "rights in hand outlive their window", File: "idem/quota/rate.go", Old: "		r.have, r.empty, r.first = 0, 0, w.draw", New: "		r.empty, r.first = 0, w.draw"},
	{Name: "what comes back counts twice", File: "idem/quota/dynamoquota/dynamoquota.go", Old: "		standard.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}}\n", New: ""},
	{Name: "a right is not used up", File: "idem/quota/rate.go", Old: "	r.have--\n	r.window.given++\n", New: "	r.window.given++\n"},
	{Name: "a limit that is reached admits", File: "idem/quota/quota.go", Old: "	if err == nil && wait > 0 {", New: "	if err == nil && wait > time.Hour {"},
	{Name: "a right to a key is kept where there are too many keys", File: "idem/quota/quota.go", Old: "			t.keys.giveBack(taken.window)\n", New: ""},
	{Name: "tenants share a counter", File: "idem/quota/quota.go", Old: "counterName(counts, tenant, window*seconds, shard)", New: `counterName(counts, "", window*seconds, shard)`},
	{Name: "a right that is given back is lost", File: "idem/quota/tenant.go", Old: "	t.back = append(t.back, r)\n", New: "	_ = r\n"},
}

// calls: what a provider's answer proves.
var calls = []Mutant{
	{Name: "a redirect is followed", File: providerFile, Old: "			CheckRedirect: NoRedirects,\n", New: ""},
	{Name: "a redirect is a success", File: providerFile, Old: "	if res.StatusCode/100 == 2 {", New: "	if res.StatusCode/100 == 2 || res.StatusCode/100 == 3 {"},
	{Name: "a topic's own key replaces the downstream key", File: providerFile, Old: `	req.Header.Set("Idempotency-Key", string(r.Key))`, New: `	if req.Header.Get("Idempotency-Key") == "" {
		req.Header.Set("Idempotency-Key", string(r.Key))
	}`},
	{Name: "a request may be sent twice", File: providerFile, Old: "	req.GetBody = nil\n", New: ""},
	{Name: "a lost connection says that nothing happened", File: providerFile, Old: "	case looks.Connected.Load():\n		return false\n", New: ""},
	{Name: "what a transport without hooks sent was never sent", File: providerFile, Old: "|| errors.Is(err, ErrNotSent):", New: "|| err != nil:"},
	{Name: "a token that nobody gave says that its request was never sent", File: providerFile, Old: "looks.AskedFor(to) ||", New: "looks.Asked.Load() ||"},
	{Name: "a proxy that is not there leaves open what was sent", File: providerFile, Old: "(looks.Asked.Load() || c.standard())", New: "c.standard()"},
	{Name: "another library's transport is net/http's", File: providerFile, Old: "	_, standard := transport.(*http.Transport)\n	return standard\n", New: "	return transport != nil\n"},
	{Name: "a body that was read counts as unread", File: providerFile, Old: "	return !begun && (", New: "	return ("},
	{Name: "a refused connection leaves open what was sent", File: providerFile, Old: "	case looks.AskedFor(to) ||", New: "	case !begun && looks.AskedFor(to) ||"},
	{Name: "half an answer is evidence", File: providerFile, Old: "	if err != nil {\n		return outbox.Ambiguous{Cause: fmt.Errorf(\"call: answer %d: %w\"", New: "	if err != nil && len(body) == 0 {\n		return outbox.Ambiguous{Cause: fmt.Errorf(\"call: answer %d: %w\""},
	{Name: "an unlisted status is a refusal", File: providerFile, Old: "	return outbox.Ambiguous{Cause: cause}\n}", New: "	return outbox.Refused{Cause: cause}\n}"},
	{Name: "an answer that contradicts itself is evidence", File: providerFile, Old: "		if err := r.Check(declined, body); err != nil {", New: "		if err := r.Check(declined, body); err != nil && len(body) == 0 {"},
	{Name: "an answer without a reference is evidence", File: providerFile, Old: "			return outbox.Ambiguous{Cause: fmt.Errorf(\"call: answer %d can't be read\", res.StatusCode)}\n", New: "			reference = \"\"\n"},
	{Name: "the head of a call that was frozen leaves", File: lookFile, Old: "			_ = alone.conn.Close() // what it says changes nothing\n", New: ""},
	{Name: "the head of a call that was frozen leaves over HTTP/2", File: lookFile, Old: "			if l.over() == nil { // otherwise", New: "			if l.look() == nil { // otherwise"},
	{Name: "a late call over HTTP/2 closes a connection that others use", File: lookFile, Old: "				l.alone.Store(nil)\n", New: "				_ = l.alone.Load()\n"},
	{Name: "the body of a call that was frozen leaves", File: lookFile, Old: "	if late := b.looks.over(); late != nil {\n", New: "	if late := error(nil); late != nil {\n"},
	{Name: "the rest of a long body leaves after a freeze", File: lookFile, Old: "	b.read.Store(true) // also where it is too late: a transport without hooks may have sent the head\n	n, err := b.ReadCloser.Read(p)\n	if late := b.looks.over(); late != nil {", New: "	if b.read.Swap(true) {\n		return b.ReadCloser.Read(p)\n	}\n	n, err := b.ReadCloser.Read(p)\n	if late := b.looks.over(); late != nil {"},
	{Name: "a call's deadline is counted from when it is made", File: "idem/outbox/provider.go", Old: "context.WithDeadline(caller, deadline)", New: "context.WithTimeout(caller, x.cfg.CallTimeout)"},
	{Name: "an empty body is sent", File: providerFile, Old: "	if len(r.Body) == 0 {\n		return nil, errEmptyBody\n	}\n", New: ""},
}

// outcomes: what the worker makes of it.
var outcomes = []Mutant{
	{Name: "a run looks into the shards of its own release only", File: "idem/outbox/runner.go", Old: "	return max(own, kept), nil\n", New: "	return min(own, kept), nil\n"},
	{Name: "a container tells its shards with its first round", File: "idem/outbox/run.go", Old: "	if _, err := r.shards(ctx); err != nil {\n", New: "	if err := error(nil); err != nil {\n"},
	{Name: "a run that names shards looks into those of its own release only", File: "idem/outbox/runner.go", Old: "shard += r.store.Shards() {", New: "shard += of {"},
	{Name: "absence is proof while a frozen process may still send", File: "idem/outbox/topic.go", Old: "return cfg.FreezeAllowance + t.LongestRequest + t", New: "return t.LongestRequest + t"},
	{Name: "a key is used again while a frozen process may outlive it", File: "idem/outbox/topic.go", Old: "return cfg.ClaimLease + cfg.FreezeAllowance + t", New: "return cfg.ClaimLease + t"},
	{Name: "evidence of another object than the settled one is no news", File: "idem/outbox/notify.go", Old: "if s.Code == protocol.Unchanged && x.differs() {", New: "if false {"},
	{Name: "a chain has one message more", File: "idem/outbox/provider.go", Old: "m.Index >= ChainMax", New: "m.Index > ChainMax"},
	{Name: "each try of a settlement is prepared anew", File: "idem/outbox/delivery.go", Old: "	if x.send == nil {\n		if x.send, err", New: "	if true {\n		if x.send, err"},
	{Name: "a freeze before the clock is read gives a delivery more time", File: "idem/outbox/delivery.go", Old: "	now := x.now() // first: what a freeze takes, it takes from the delivery\n	left, bounded := remaining(ctx)\n", New: "	left, bounded := remaining(ctx)\n	now := x.now()\n"},
	{Name: "absence is dated by when it is written", File: "idem/protocol/call.go", Old: "offer(m, d.AskedAt, in.Now, c)", New: "offer(m, in.Now, in.Now, c)"},
	{Name: "a person's decline of one attempt of several is left to a sweep", File: "idem/protocol/settle.go", Old: "d.Errand == Judgement && d.Evidence == OutDeclined && !c", New: "d.Errand == Judgement && d.Evidence == OutDeclined && false && !c"},
	{Name: "a decline that is doubted is told as a delivery", File: "idem/outbox/provider.go", Old: " || e == protocol.NoOutcome && x.row.KeptDelivered == nil {", New: " {"},
	{Name: "a person's decline that may have landed was throttled", File: "idem/outbox/delivery.go", Old: "	case x.unheard == nil || !x.machine.At.Tainted &&", New: "	case x.unheard == nil || "},
	{Name: "a doubt that somebody has ended is told", File: "idem/protocol/delivery.go", Old: "			d.Alarms &^= AlarmWeak // somebody has decided meanwhile\n", New: ""},
	{Name: "a person's own settlement that is found late is another's", File: "idem/outbox/operator.go", Old: "translation.IDOf(x.row.Revision) == x.ending:", New: "translation.IDOf(x.row.Revision) != x.ending && false:"},
	{Name: "of what had no reply a person is told that another was faster", File: "idem/outbox/delivery.go", Old: "	case x.unheard != nil:\n", New: "	case x.unheard != nil && false:\n"},
	{Name: "what undoes after a decline is a step like any other", File: "idem/outbox/provider.go", Old: "Undoes: said.Next != nil && said.Next.Undoes, ", New: ""},
	{Name: "a topic that panics is another release's", File: "idem/outbox/decision.go", Old: "	if foreign && !errors.Is(err, errPanicked) {\n", New: "	if foreign {\n"},
	{Name: "a payload on which its topic panicked can be read", File: "idem/outbox/topic.go", Old: "			err = fmt.Errorf(\"outbox: knows of %s %w with a %T\", t.Name, errPanicked, p)\n", New: ""},
	{Name: "of a failure that the store refuses for good nobody is told", File: "idem/protocol/fail.go", Old: "v == Nothing && d.At.Refused && d.Errand != Close &&", New: "false &&"},
	{Name: "a caller that is refused uses up its message's attempts", File: "idem/outbox/translate.go", Old: "if o.Unsent || o.Unauthorized {", New: "if o.Unsent {"},
	{Name: "a settlement's headers may be as large as a body", File: "idem/outbox/write.go", Old: "x.checkSize(said.Response) != nil:", New: "said.Response.Bytes() > x.topic.ResponseBytesMax:"},
	{Name: "of a provider that can't be reached nobody is told", File: "idem/outbox/provider.go", Old: "case o.Unsent && caller.Err() == nil:", New: "case o.Unsent && caller.Err() != nil:"},
	{Name: "a provider is asked again before the time that it names", File: "idem/outbox/provider.go", Old: "min(o.RetryAfter, retryAfterMax)", New: "min(o.RetryAfter/2, retryAfterMax)"},
	{Name: "a call that says nothing did nothing", File: "idem/outbox/provider.go", Old: "		return Ambiguous{Cause: fmt.Errorf(\"outbox: call answered with a %T\", outcome)}", New: "		return NotExecuted{Cause: fmt.Errorf(\"outbox: call answered with a %T\", outcome)}"},
	{Name: "a call that panicked did nothing", File: "idem/outbox/provider.go", Old: "			outcome = Ambiguous{Cause: fmt.Errorf(\"outbox: call panicked", New: "			outcome = NotExecuted{Cause: fmt.Errorf(\"outbox: call panicked"},
	{Name: "a refusal is evidence", File: "idem/outbox/outcome.go", Old: "	case Delivered, Declined:\n		return true", New: "	case Delivered, Declined, Refused:\n		return true"},
	{Name: "a decline is no evidence", File: "idem/outbox/outcome.go", Old: "	case Delivered, Declined:\n		return true", New: "	case Delivered:\n		return true"},
	{Name: "what a settlement ended is free too early", File: "idem/outbox/write.go", Old: "		end.FreeAt = end.FreeAt.Add(x.cfg.ClockSkew)\n", New: "		_ = x.cfg.ClockSkew\n"},
	{Name: "another release's message stops its worker", File: "idem/outbox/desk.go", Old: "\"message\", id, \"error\", err, \"alarm\", true)\n	return true", New: "\"message\", id, \"error\", err, \"alarm\", true)\n	return false"},
}

// functions: what a handler of a function is given.
var functions = []Mutant{
	{Name: "an error quotes the input", File: "idem/function/error.go", Old: "\"function: unusable input: \" + unreadable(e.Err)", New: "\"function: unusable input: \" + e.Err.Error()"},
	{Name: "a function's second run gets the input that the first one made", File: "idem/function/function.go", Old: "h(ctx, tx, bytes.Clone(input))", New: "h(ctx, tx, bytes.TrimRight(input, \"\"))"},
}

// executions: how the engine performs what the protocol asks for.
var executions = []Mutant{
	{Name: "a rejection that says that nothing happened is final", File: "idem/handled.go", Old: "		r.response, r.err = rejected.Problem.Response(), nil //", New: "		_ = rejected //"},
	{Name: "a rejection of a wrapped handler is told to its client alone", File: "idem/handled.go", Old: "errors.As(r.err, &rejected):", New: "errors.As(r.err, &rejected) && x.op.Kind != KindWrapped:"},
	{Name: "a client asks each second for a key that is freed in minutes", File: "idem/latency.go", Old: "	case r.State == storage.StateFailedRetryable:\n", New: "	case false:\n"},
	{Name: "a frozen holder acts on by a row from before a loss", File: "idem/renewal.go", Old: "	return x.engine.bars(ctx, x.op, x.req) == nil\n", New: "	_ = ctx\n	return true\n"},
	{Name: "an observed handler that was frozen has no lease after a loss", File: "idem/renewal.go", Old: " || x.op.Policy.Observe {", New: " {"},
	{Name: "an answer waits for a renewal that hangs", File: "idem/renewal.go", Old: "	r.cut()\n", New: "	defer r.cut()\n"},
	{Name: "an observed request without time has no record", File: "idem/protocol/acquire.go", Old: "	if c.runsAnyway() {\n		return now", New: "	if c.runsAnyway() && false {\n		return now"},
	{Name: "what is asked beside an execution takes the time of its answer", File: "idem/engine.go", Old: "	until := protocol.PlanOf(began, end, &c).ReplyUntil()\n", New: "	plan := protocol.PlanOf(began, end, &c)\n	until := plan.StoreUntil + plan.AnswerMargin\n"},
	{Name: "the pause before a handler runs again takes its time", File: "idem/run.go", Old: "	pause.Until -= x.machine.Plan.WorkLeast(&x.cfg) // that", New: "	_ = x.machine.Plan.WorkLeast(&x.cfg) // that"},
	{Name: "a handler starts however long its process was frozen before it", File: "idem/run.go", Old: "	if x.slept(a, until) { // and", New: "	if x.slept(a, until) && false { // and"},
	{Name: "a freeze before a handler shows in the monotonic clock", File: "idem/run.go", Old: " || a.Until-x.now() < least\n", New: "\n"},
	{Name: "a freeze before a handler shows in the wall clock", File: "idem/run.go", Old: "translation.SpanOf(least) || a", New: "translation.SpanOf(least) && false || a"},
	{Name: "of a key that could not be given back nobody is told", File: "idem/execution.go", Old: "	case err != nil:\n		x.unsettled = err", New: "	default:\n		x.unsettled = err"},
	{Name: "a record that is another's is told to keep its lease", File: "idem/execution.go", Old: "code == protocol.OK || code == protocol.Refused:", New: "code == protocol.OK:"},
	{Name: "a freeze after the clock was read gives a handler more time", File: "idem/driver.go", Old: "	watch := timers.Begin()\n	return watch.Deadline(translation.SpanOf(until - d.now()))\n", New: "	left := translation.SpanOf(until - d.now())\n	watch := timers.Begin()\n	return watch.Deadline(left)\n"},
	{Name: "a store that hangs is a client that hung up", File: "idem/event.go", Old: "	case errors.Is(err, context.Canceled) && timers.Cancelled(ctx):", New: "	case errors.Is(err, context.Canceled) || timers.Cancelled(ctx):"},
	{Name: "a release that had no reply is told to have changed nothing", File: "idem/change.go", Old: "		if c.unheard != nil {\n", New: "		if c.unheard != nil && false {\n"},
	{Name: "a stored response takes the time of its answer", File: "idem/answer.go", Old: "x.within(x.machine.ReadUntil(x.now(), &x.cfg))", New: "x.engine.cfg.CallTimeout"},
	{Name: "a key that is free has an operation in progress", File: "idem/engine.go", Old: "	case r.KeyFree(now) || r.Abandoned(now, e.cfg.ClockSkew): // TTL is late: nobody goes on with it any more\n		return nil, nil\n", New: ""},
	{Name: "an answer that was taken out of use is told to be given still", File: "idem/admin.go", Old: "busted = c.machine.Heard || code == protocol.Changed; err", New: "busted = code == protocol.Changed; err"},
	{Name: "a poll outlasts its wait", File: "idem/engine.go", Old: "e.timers.WithTimeout(ctx, wait+lastPoll)", New: "e.timers.WithTimeout(ctx, wait+time.Minute)"},
	{Name: "each try of a transaction is prepared anew", File: "idem/execution.go", Old: "	if a.Write.Rec.Revision != x.frozen.revision {", New: "	if true {"},
}

// replays: what is told again.
var replays = []Mutant{
	{Name: "a replay does not say in which coding it is", File: "idem/policy.go", Old: " || name == \"Content-Encoding\" || ", New: " || "},
	{Name: "what is stored is in a coding that a retry may not accept", File: "idem/middleware/record.go", Old: "		r.Header.Del(\"Accept-Encoding\")", New: "		r.Header.Del(\"X-Accept-Encoding\")"},
	{Name: "the type of coded bytes is guessed", File: "idem/middleware/record.go", Old: " && w.sent.Get(\"Content-Encoding\") == \"\" {", New: " {"},
	{Name: "a body that was read before is none", File: "idem/middleware/request.go", Old: "consumed: consumed(r, body, err)}, nil", New: "consumed: consumed(r, body, err) && false}, nil"},
	{Name: "the beginning of a body may be read before", File: "idem/middleware/request.go", Old: "int64(len(body)) < r.ContentLength ||", New: "len(body) == 0 && r.ContentLength > 0 ||"},
	{Name: "a form without a length may be read before", File: "idem/middleware/request.go", Old: " || len(r.PostForm) > 0\n", New: "\n"},
	{Name: "a body that was closed before is malformed", File: "idem/middleware/request.go", Old: "errors.Is(err, http.ErrBodyReadAfterClose) || int64", New: "int64"},
	{Name: "what is observed is read before, and recorded", File: "idem/middleware/observewrapped.go", Old: "consumed(o.request, body, err)\n", New: "err != nil\n"},
	{Name: "what a front compresses is recorded as compressed", File: "idem/middleware/record.go", Old: "	if len(w.front) > 0 && ", New: "	if len(w.front) > 9 && "},
	{Name: "the status of an operation is another principal's", File: "idem/middleware/status.go", Old: "record.Principal == principal.Stored(record.Tenant, r.Identity.Principal)", New: "principal.Stored(record.Tenant, r.Identity.Principal) != \"\""},
	{Name: "a type that is set in front is sent beside the answer's", File: answerFile, Old: "		if single(f.Name) {\n", New: "		if false {\n"},
	{Name: "any header is replayed", File: answerFile, Old: "		response.Header = c.endpoint.allowed(response.Header)\n", New: ""},
	{Name: "a handler says of itself that it was replayed", File: answerFile, Old: "		h.Del(name) // a handler must not set these headers\n", New: "		_ = name\n"},
	{Name: "a replay does not say so", File: answerFile, Old: "		a.replayed = result.Outcome == idem.OutcomeReplayed\n", New: ""},
	{Name: "an answer of which nobody knows what it did says executed", File: answerFile, Old: "			a.status = string(idem.OutcomeUnknown)\n", New: ""},
	{Name: "a 409 says of what waits for an operator that it is being resolved", File: answerFile, Old: "	case op.Probed:\n", New: "	case op.Kind != \"\":\n"},
	{Name: "a 503 says not when to come again", File: answerFile, Old: "http.StatusConflict, http.StatusServiceUnavailable, http.StatusTooManyRequests:", New: "http.StatusConflict, http.StatusTooManyRequests:"},
	{Name: "an observed request that failed runs again", File: observeFile, Old: "err != nil && !refuses(err) {", New: "err != nil && !refuses(err) && false {"},
	{Name: "an observed request that ran runs again", File: observeFile, Old: "	if result != nil && result.Outcome == idem.OutcomeExecuted || err", New: "	if err"},
	{Name: "a wrapped request that failed under observation runs again", File: "idem/middleware/observewrapped.go", Old: "	case !o.ran:\n		e.unprotected", New: "	case !o.ran || o.client.recorder.status >= 500:\n		e.unprotected"},
	{Name: "an observed handler does not know its operation id", File: "idem/middleware/observewrapped.go", Old: "o.request.WithContext(idem.Observing(o.request.Context(), handling))", New: "o.request.WithContext(context.WithoutCancel(o.request.Context()))"},
	{Name: "an unprotected execution inside of a protected one has no lease", File: "idem/running.go", Old: "		return leased(r.within)", New: "		return nil"},
	{Name: "executions without protection share one operation id", File: "idem/middleware/endpoint.go", Old: "	e.passThrough.ServeHTTP(w, r.WithContext(ctx))", New: "	_ = ctx\n	e.passThrough.ServeHTTP(w, r)"},
	{Name: "an observed request that the quota refuses has no record", File: "idem/execution.go", Old: "	if x.refused != nil && !x.op.Policy.Observe {", New: "	if x.refused != nil {"},
	{Name: "an observed request is refused after a loss of records", File: "idem/answer.go", Old: "x.barred != nil && !x.op.Policy.Observe\n", New: "x.barred != nil\n"},
	{Name: "an observed request that enforcement would have refused is not reported", File: observeFile, Old: "		c.reportOverruled(r.Context())\n", New: ""},
	{Name: "what an operator freed is still only observed", File: "idem/protocol/change.go", Old: "			next.Observed = false\n", New: "			next.Observed = r.Observed\n"},
	{Name: "proof about an observed record is proof about what ran beside it", File: "idem/protocol/change.go", Old: "		if r.State == Retryable || c.off(ProofIsOfAll) {", New: "		if r.State != Absent || c.off(ProofIsOfAll) {"},
	{Name: "a dead lease that was only observed holds its key for ever", File: "idem/protocol/acquire.go", Old: "	case r.abandoned(now, c):", New: "	case r.abandoned(now, c) && r.State.Final():"},
	{Name: "a dead lease that was only observed is held for as long as who meets it says", File: "idem/protocol/record.go", Old: "return cmp.Or(r.Retention, c.Life.Retention)", New: "return max(cmp.Or(r.Retention, c.Life.Retention), c.Life.Retention)"},
	{Name: "a key that was only observed is being resolved in its last two seconds", File: "idem/protocol/acquire.go", Old: "Op: r.Op, OnlyObserved: true})", New: "Op: r.Op, OnlyObserved: now < r.Lease+r.Retention})"},
	{Name: "the status of what was only observed says in its last two seconds that it runs", File: "idem/storage/record.go", Old: "r.Retention+skew", New: "r.Retention"},
	{Name: "nobody hears of a key that was only observed", File: "idem/event.go", Old: "	if result != nil && result.OnlyObserved {", New: "	if result != nil && result.OnlyObserved && err != nil {"},
	{Name: "the status of what was only observed says that it runs", File: "idem/middleware/status.go", Old: "	if m.engine.OnlyObserved(r) {", New: "	if m.engine.OnlyObserved(r) && r.State.Final() {"},
	{Name: "an observed answer is taken out of use", File: "idem/protocol/change.go", Old: "r.RecordOnly && !r.Observed", New: "r.RecordOnly"},
	{Name: "an observed handler's error is a refusal", File: observeFile, Old: "	if errors.As(err, &handler) {\n		return false\n	}\n", New: "	if errors.As(err, &handler) {\n		return true\n	}\n"},
	{Name: "a handler's second run gets the body that the first one made", File: "idem/middleware/request.go", Old: "Body: bytes.Clone(r.Body)}", New: "Body: bytes.TrimRight(r.Body, \"\")}"},
	{Name: "a handler's second run gets the header that the first one made", File: "idem/middleware/request.go", Old: "HTTP: r.HTTP.Clone(ctx)", New: "HTTP: r.HTTP.WithContext(ctx)"},
	{Name: "problems may be cached", File: answerFile, Old: " && h.Get(guard.Name) == \"\" {\n", New: " && h.Get(guard.Name) == \"-\" {\n"},
}

// seals: who can read what is stored, and where it counts.
var seals = []Mutant{
	{Name: "the mark of an erased key settles a message", File: "idem/seal/store.go", Old: "		if part.evidence && markedErased(", New: "		if false && part.evidence && markedErased("},
	{Name: "a tenant's key that is read may be old", File: "idem/seal/tablekeys/tablekeys.go", Old: "ConsistentRead: aws.Bool(true)", New: "ConsistentRead: aws.Bool(false)"},
	{Name: "a tombstone erases only the keys that its own table had", File: "idem/seal/tablekeys/copy.go", Old: "	if k.erased() && other.erasedThrough == 0 {\n", New: "	if k.erased() && other.erasedThrough == 0 && false {\n"},
	{Name: "a tombstone that is copied again erases a renewed key", File: "idem/seal/tablekeys/copy.go", Old: " && other.erasedThrough == 0 {\n", New: " {\n"},
	{Name: "an erased tenant's answer under a key that its table never had is waited for", File: "idem/seal/tablekeys/tablekeys.go", Old: "	case stored.erased() || id <= stored.erasedThrough:\n", New: "	case id <= stored.erasedThrough:\n"},
	{Name: "the first key of a tenant that comes back has an erased one's id", File: "idem/seal/tablekeys/tablekeys.go", Old: "	through = max(stored.current, firstKey) //", New: "	through = max(stored.current, 0) //"},
	{Name: "an erasure that arrives late erases a renewed key", File: "idem/seal/tablekeys/tablekeys.go", Old: "		ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,\n	})\n	if _, lost", New: "		ConditionExpression: aws.String(\"(\" + *condition + \") OR attribute_exists(#keys) OR attribute_not_exists(#keys)\"), ExpressionAttributeNames: names, ExpressionAttributeValues: values,\n	})\n	if _, lost"},
	{Name: "an erasure that others overtook erases what they have renewed", File: "idem/seal/tablekeys/tablekeys.go", Old: " || through > 0 && stored.erasedThrough >= through {", New: " {"},
	{Name: "a key that one has made oneself is another's", File: "idem/seal/tablekeys/tablekeys.go", Old: "		return err == nil && bytes.Equal", New: "		return err != nil && bytes.Equal"},
	{Name: "a renewal undoes a later erasure", File: "idem/seal/tablekeys/tablekeys.go", Old: "		case stored.erasedThrough > first.erasedThrough:\n", New: "		case stored.erasedThrough < first.erasedThrough:\n"},
	{Name: "a rotation takes back what a copy brought meanwhile", File: "idem/seal/tablekeys/item.go", Old: "AND #keys = :keys\")", New: "AND (#keys = :keys OR attribute_exists(#keys))\")"},
	{Name: "an alias names what wraps the keys", File: "idem/seal/awskms/awskms.go", Old: "	case isAlias(keyID):\n", New: "	case isAlias(keyID) && keyID == \"\":\n"},
	{Name: "an alias's ARN names what wraps the keys", File: "idem/seal/awskms/awskms.go", Old: " || strings.HasPrefix(keyID, \"arn:\") && strings.Contains(keyID, \":alias/\")", New: ""},
	{Name: "a copy that one has made oneself is another's", File: "idem/seal/tablekeys/copy.go", Old: "		return err == nil && reflect", New: "		return err != nil && reflect"},
	{Name: "an envelope opens in another tenant's row", File: envelopeFile, Old: "string(p.what), p.tenant, string(p.record)", New: `string(p.what), "", string(p.record)`},
	{Name: "an envelope opens in another record", File: envelopeFile, Old: "p.tenant, string(p.record), p.id", New: `p.tenant, "", p.id`},
	{Name: "a response opens beside another status", File: envelopeFile, Old: "p.id, p.beside} {", New: `p.id, ""} {`},
	{Name: "an evidence is a payload", File: envelopeFile, Old: `"idem/seal", string(p.what), p.tenant`, New: `"idem/seal", "", p.tenant`},
	{Name: "keys are derived in another way", File: envelopeFile, Old: "string(p.bytes()), 2*KeyBytes)", New: `string(p.bytes())+"2", 2*KeyBytes)`},
	{Name: "the two keys change places", File: envelopeFile, Old: "	return aead, derived[KeyBytes:], nil", New: "	return aead, derived[:KeyBytes], nil"},
	{Name: "an envelope's head is not authentic", File: envelopeFile, Old: "	bound := append(bytes.Clone(out), p.bytes()...)", New: "	bound := p.bytes()"},
	{Name: "a nonce does not depend on the text", File: envelopeFile, Old: "	mac.Write(text)\n", New: ""},
	{Name: "an older key that is read late is current again", File: "idem/seal/asking.go", Old: "	if key.Current && key.ID >= a.newest {", New: "	if key.Current {"},
	{Name: "a key is used that grew too old while it was asked for again", File: "idem/seal/ring.go", Old: "	case usable && clock.Within(r.cfg.Now(), held.asked, r.cfg.KeyAgeMax):", New: "	case usable:"},
	{Name: "a key is used that was told before a freeze", File: "idem/seal/ring.go", Old: "(err != nil || clock.Within(r.cfg.Now(), asking.at, r.cfg.KeyAgeMax))", New: "(err != nil || true)"},
	{Name: "an older key that was read late seals", File: "idem/seal/asking.go", Old: " || key.ID < a.newest)", New: ")"},
	{Name: "an erasure is forgotten for a reply that is late", File: "idem/seal/asking.go", Old: "		other.all = other.all || name.id == currentKey\n", New: ""},
	{Name: "an answer in the open is taken where all is sealed", File: "idem/seal/store.go", Old: "	return s.cfg.SealedOnly && !r.Sealed", New: "	return s.cfg.SealedOnly && r.Sealed"},
	{Name: "a payload in the open takes a sealed one's place", File: "idem/seal/store.go", Old: "&opened.Payload, m.Sealed || s.cfg.SealedOnly, false}", New: "&opened.Payload, s.cfg.SealedOnly, false}"},
	{Name: "what is empty and in the open is taken where all is sealed", File: "idem/seal/store.go", Old: "		if part.bytes == nil || !part", New: "		if part.bytes == nil || len(*part.bytes) == 0 || !part"},
	{Name: "what is empty is not sealed", File: "idem/seal/sealing.go", Old: "	if x.store.cfg.OpenOnly {\n		return plain", New: "	if len(plain) == 0 || x.store.cfg.OpenOnly {\n		return plain"},
	{Name: "evidence beside a payload that does not open is not looked at", File: "idem/seal/store.go", Old: "			unopened, m.EvidenceRefused = true, m.EvidenceRefused || part.evidence\n", New: "			m.Sealed, m.EvidenceRefused = true, m.EvidenceRefused || part.evidence\n			return m, nil\n"},
	{Name: "evidence that is not authentic settles", File: "idem/internal/translation/message.go", Old: "	if m.EvidenceRefused {\n", New: "	if m.EvidenceRefused && false {\n"},
	{Name: "of what evidence that is not authentic is about nothing happened", File: "idem/internal/translation/message.go", Old: "	if h.OpenSince == 0 {\n		h.OpenSince = h.Created\n	}\n", New: ""},
}

// caches: what may be told without asking the store.
var caches = []Mutant{
	{Name: "a cache joins chunks of another execution", File: entryFile, Old: "	return a.OperationID == b.OperationID && a.Epoch == b.Epoch && a.Owner == b.Owner && a.State == b.State && a.DoneAt.Equal(b.DoneAt)", New: "	return a.OperationID == b.OperationID"},
	{Name: "what was joined is as young as its newer half", File: entryFile, Old: "		whole.asked = older.asked\n", New: "		whole.asked = newer.asked\n"},
	{Name: "an entry is kept past its age", File: entryFile, Old: "	return !clock.Within(now, e.asked, cfg.MaxAge) || !now", New: "	return !clock.Within(now, e.asked, cfg.MaxAge<<20) || !now"},
	{Name: "an entry outlives its record", File: entryFile, Old: ", cfg.MaxAge) || !now.Before(e.record().ExpiresAt.Add(-cfg.ClockSkew))", New: ", cfg.MaxAge)"},
	{Name: "a record that can change is kept", File: entryFile, Old: "	return r.Readable() && r.State.Final() && !r.ExpiresAt.IsZero()", New: "	return r.Readable() && !r.ExpiresAt.IsZero()", Survives: "only a final record has an ExpiresAt (storage.Record), so the next condition says the same"},
	{Name: "a record whose chunks are another's is told again", File: "idem/cache/cache.go", Old: "	if errors.Is(err, storage.ErrChunksMissing) {\n", New: "	if errors.Is(err, storage.ErrChunksMissing) && r.Chunks == 0 {\n"},
	{Name: "what a write overtook is kept", File: entryFile, Old: "	if !by.brought(r) {\n		return\n	}\n", New: ""},
	{Name: "a caller changes what is kept", File: entryFile, Old: "slices.Clone(r.Response.Header), bytes.Clone(r.Response.Body)", New: "slices.Clone(r.Response.Header), bytes.TrimSpace(r.Response.Body)"},
}

// guards: which calls of a wrapped handler leave.
var guards = []Mutant{
	{Name: "a call that was frozen while it connected leaves", File: "idem/guard/guard.go", Old: "t.base.RoundTrip(watched(r.WithContext(ctx), looks))", New: "t.base.RoundTrip(r)"},
	{Name: "a head over HTTP/2 that is about to leave was not sent", File: lookFile, Old: "				l.Left.Store(true) // HTTP/2", New: "				l.Left.Store(l.Left.Load()) // HTTP/2"},
	{Name: "what was stopped before its head left may have left", File: lookFile, Old: "			l.Left.Store(alone.left) // before", New: "			// before"},
	{Name: "what is stopped when it is sent again was never sent", File: lookFile, Old: "l.Left.Store(alone.left) // before", New: "l.Left.Store(false) // before"},
	{Name: "a head that a transport without hooks sent was not sent", File: "idem/guard/guard.go", Old: "looks.Left.Load() || !looks.Asked.Load())", New: "looks.Left.Load() || !looks.Asked.Load() && !hasBody(r))"},
	{Name: "a piece of a body leaves whenever it is made", File: lookFile, Old: "	n, err := b.ReadCloser.Read(p)\n	if late := b.looks.over(); late != nil {\n		return 0, late\n	}\n", New: "	if late := b.looks.over(); late != nil {\n		return 0, late\n	}\n	n, err := b.ReadCloser.Read(p)\n"},
	{Name: "what is sent again is not looked at", File: "idem/guard/guard.go", Old: "			return looks.Body(body), nil\n", New: "			return body, nil\n"},
	{Name: "a call of which a part has left was not sent", File: "idem/guard/guard.go", Old: "late, looks.Left.Load() || !looks", New: "late, !looks"},
	{Name: "what a redirect led to was not sent, so that nothing was", File: "idem/guard/guard.go", Old: "	if partly || r.Response != nil {", New: "	if partly {"},
}

// comparisons: what of a request the middleware compares, and what it reads of its time.
var comparisons = []Mutant{
	{Name: "the rest of a path is the same in other segments", File: "idem/middleware/selection.go", Old: "		if plain {\n", New: "		if plain || true {\n"},
	{Name: "another path's request is the same", File: "idem/middleware/selection.go", Old: "Path: sentPath(r.HTTP), MediaType", New: "Path: \"/\", MediaType"},
	{Name: "a first-sent time of year 1 is none", File: "idem/middleware/firstsent.go", Old: "	case err == nil:\n", New: "	case err == nil && sent.IsZero():\n		return nil, nil\n	case err == nil:\n"},
}

// compared: the same, which stories of the simulator should notice: their clients change one part of a request.
var compared = []Mutant{
	{Name: "stories: the body does not count", File: inputFile, Old: "	dst = appendField(dst, body)\n", New: ""},
	{Name: "stories: the method does not count", File: inputFile, Old: "		dst = appendField(dst, in.Method)\n", New: ""},
	{Name: "stories: the query does not count", File: inputFile, Old: "	for _, name := range names {", New: "	for _, name := range names[:0] {"},
	{Name: "stories: the media type does not count", File: inputFile, Old: "	dst = appendField(dst, mediaType)\n", New: "	dst = appendField(dst, mediaType[:0])\n"},
}

// apiKeys: whose keys are taken.
var apiKeys = []Mutant{
	{Name: "a test key is taken where none is", File: "functions/internal/apikey/apikey.go", Old: "	if k.cfg.RefuseTest && strings", New: "	if k.cfg.RefuseTest && false && strings"},
	{Name: "a reading that a freeze held up is shared", File: "functions/internal/apikey/apikey.go", Old: "	if err == nil && k.old(read.asked) { // its", New: "	if err == nil && false { // its"},
	{Name: "a clock that is set back a little makes a key young", File: "functions/internal/apikey/held.go", Old: "clock.Within(now, e.asked, in.age)", New: "clock.Within(now.Round(0), e.asked, in.age)"},
	{Name: "a caller that gives up takes along the answer of those that share its read", File: "functions/internal/apikey/apikey.go", Old: "k.fetch(context.WithoutCancel(ctx), id)", New: "k.fetch(ctx, id)"},
	{Name: "a live key is refused where no test key is taken", File: "functions/internal/apikey/apikey.go", Old: " && strings.HasPrefix(bearer, token.Test) {", New: " {"},
}

// pages: what lists a table lists all of it, and as it is. An emulator's table is one page, and is read strongly whatever is asked.
var pages = []Mutant{
	{Name: "the keys of some tenants are copied to the other Region", File: "idem/seal/tablekeys/copy.go", Old: "	for pages.HasMorePages() {", New: "	for first := true; first; first = false {"},
	{Name: "what can't be opened is looked for on the first page", File: openFile, Old: "	for pages.HasMorePages() {", New: "	for first := true; first; first = false {"},
	{Name: "what can't be opened is looked for in old rows", File: openFile, Old: "ConsistentRead: aws.Bool(true)", New: "ConsistentRead: aws.Bool(false)"},
	{Name: "some of a tenant's API keys are shown", File: "functions/internal/apikey/table.go", Old: "	for pages.HasMorePages() {", New: "	for first := true; first; first = false {"},
	{Name: "a day's later audit entries are shown only", File: auditFile, Old: "				if err = d.next(ctx); err != nil {", New: "				if d.more = false; err != nil {"},
	{Name: "an audit log is read day by day", File: auditFile, Old: "slices.Chunk(l.days(from, to, subject), readAtOnce)", New: "slices.Chunk(l.days(from, to, subject), 1)"},
	{Name: "more audit entries are shown than were asked for", File: auditFile, Old: "min(len(ids), limit-len(all), readAtOnce)", New: "min(len(ids), readAtOnce)"},
	{Name: "an audit entry is shown as it was", File: auditFile, Old: "ConsistentRead: aws.Bool(true)", New: "ConsistentRead: aws.Bool(false)"},
}

// secrets: a secret that is named is never taken for none.
var secrets = []Mutant{
	{Name: "an empty scope secret is taken for none", File: "idem/lambdaapp/secret/secret.go", Old: "err != nil || len(scope) == 0 {", New: "err != nil {"},
	{Name: "a scope secret is read with the line feed of its file", File: "idem/lambdaapp/secret/secret.go", Old: "strings.TrimSpace(aws.ToString(out.SecretString))", New: "strings.TrimLeft(aws.ToString(out.SecretString), \" \")"},
}

// deadlines: a function's lease outlives its invocation.
var deadlines = []Mutant{
	{Name: "a lease ends while its function runs", File: "idem/lambdaapp/application.go", Old: "a.env.function != environment.Operator, a.env.timeout", New: "false, a.env.timeout"},
	{Name: "a lease ends while the API function runs", File: "functions/api/main.go", Old: "		KillsAtDeadline: true, // as AWS Lambda does\n", New: ""},
}

// productions: what a stage with real money has by default.
var productions = []Mutant{
	{Name: "production takes test keys", File: "infra/stage/production.go", Old: "		context[\"testKeys\"] = string(stack.TestKeysRefuse)\n", New: "		context[\"testKeys\"] = string(stack.TestKeysAccept)\n"},
}

// bounds: what is checked at start.
var bounds = []Mutant{
	{Name: "headers may be as large as a body", File: "idem/storage/bound.go", Old: "header > headerBytesMax {", New: "header > bytesMax {"},
	{Name: "a wrapped handler's headers may be as large as a body", File: "idem/handled.go", Old: "x.checkSize(ctx, r.response) != nil {", New: "r.response.Bytes() > x.engine.cfg.ResponseBytesMax {"},
	{Name: "a response may be larger than its store takes", File: "idem/bound.go", Old: "	if c.ResponseBytesMax > most {", New: "	if c.ResponseBytesMax > most<<10 {"},
}

// fronts: what stands before a function bounds what is stored for it.
var fronts = []Mutant{
	{Name: "an inline settlement is larger than its front returns", File: "idem/outbox/write.go", Old: "min(x.topic.ResponseBytesMax, x.front.Bytes)", New: "x.topic.ResponseBytesMax"},
	{Name: "headers that a load balancer never passes are committed", File: "idem/awslambda/response.go", Old: "		most.HeaderBytes = balancedHeaderBytesMax\n", New: "		_ = balancedHeaderBytesMax\n"},
}

// clocks: by which answer an operator's machine is compared with the store.
var clocks = []Mutant{
	{Name: "an answer that comes late tells the time", File: "idem/operator/awsctl/clock.go", Old: "	clockReadingsMax = 3\n", New: "	clockReadingsMax = 1\n"},
}

// stories: what an operator is told.
var stories = []Mutant{
	{Name: "a clock that is off decides", File: "idem/operator/clock.go", Old: "	if off.Abs() > ClockOffMax {\n", New: "	if false {\n"},
	{Name: "an operator is told to wait for a decline that is doubted", File: "idem/operator/step.go", Old: "		if doubted {\n", New: "		if false {\n"},
	{Name: "an operator is told to wait for a probe of what nobody can open", File: "idem/operator/step.go", Old: "rules.Probed && !unopened", New: "rules.Probed"},
	{Name: "a lost record has expired", File: "idem/operator/inspect.go", Old: "	s.RecordMayBeLost = r == nil && begun", New: "	s.RecordMayBeLost = false && begun"},
	{Name: "a lost record is as old as the message that is shown", File: "idem/operator/step.go", Old: "d.nextOfMessage(r, m, lost, mayBeLost)", New: "d.nextOfMessage(r, m, lost, mayBeLost && m.CreatedAt.Before(lost))"},
	{Name: "a lost record is as old as the message that is closed", File: "idem/operator/message.go", Old: "slices.MinFunc(append(earlier, m), ", New: "slices.MinFunc(append(earlier[:0], m), "},
	{Name: "evidence of a lost record is closed", File: "idem/operator/message.go", Old: "		if err == nil {\n			err = d.answerKnown(ctx, m, r)\n		}\n		if err != nil {\n			return \"\", err\n		}\n		return", New: "		_ = r\n		if err != nil {\n			return \"\", err\n		}\n		return"},
	{Name: "what was delivered after its operation failed is just closed", File: "idem/operator/step.go", Old: "		if (r == nil || r.State == storage.StateFailed) && !m.Detached", New: "		if false && !m.Detached"},
	{Name: "what was delivered is just closed once its record has expired", File: "idem/operator/step.go", Old: "(r == nil || r.State == storage.StateFailed)", New: "r != nil && r.State == storage.StateFailed"},
	{Name: "a redrive without its record is for the machine to refuse", File: "idem/operator/message.go", Old: "	if m.State != storage.MessageDead {\n		return nil\n	}\n	r, err", New: "	if true {\n		return nil\n	}\n	r, err"},
	{Name: "what was restored is changed before anybody has said up to when data was lost", File: "idem/operator/loss.go", Old: "	if err == nil && loss.NotDated {\n", New: "	if err == nil && loss.NotDated && false {\n"},
	{Name: "a cache-bust is of whatever answer is there", File: "idem/operator/record.go", Old: "CacheBust(ctx, r.Tenant, id, r.Revision, ch.Reason)", New: "CacheBust(ctx, r.Tenant, id, \"\", ch.Reason)"},
	{Name: "an unknown operation is released as soon as its lease is over", File: "idem/operator/record.go", Old: "r.State == storage.StateUnknown && d.now().Before(from)", New: "r.State == storage.StateUnknown && d.now().Before(r.LeaseUntil) && d.now().Before(from)"},
	{Name: "a message that can't be read hides its queue", File: "idem/operator/list.go", Old: "	return errors.As(err, new(*storage.MalformedError)) ||", New: "	return false && errors.As(err, new(*storage.MalformedError)) ||"},
	{Name: "a message whose key can't be fetched hides its queue", File: "idem/operator/list.go", Old: " || errors.Is(err, storage.ErrKeyUnavailable)", New: ""},
	{Name: "a list waits for a missing key at each row", File: "idem/operator/list.go", Old: "	case failed.waited >= tenantKeyWait:", New: "	case failed.waited < 0:"},
	{Name: "a list waits for the missing keys of all tenants", File: "idem/operator/list.go", Old: "	case l.keys.total >= l.patience:", New: "	case l.keys.total < 0:"},
	{Name: "a key that hangs takes all of its list's time", File: "idem/operator/list.go", Old: "context.WithTimeout(ctx, time.Until(deadline)/4)", New: "context.WithTimeout(ctx, time.Until(deadline))"},
	{Name: "another release's row is none of its queue", File: "idem/operator/list.go", Old: "				err = ofMessage(*m)\n", New: "				err = nil\n"},
	{Name: "what another release wrote has ended", File: "idem/operator/step.go", Old: "	if r != nil && ofRecord(*r) != nil {\n", New: "	if false {\n"},
	{Name: "a letter of another release's message goes", File: "idem/operator/letters.go", Old: "	case ofMessage(*m) != nil:", New: "	case false:"},
	{Name: "what nobody can open is ended by nothing", File: "idem/operator/desk.go", Old: "	if d.settler = d.operator; d.decrypts {\n", New: "	if d.settler = d.operator; false {\n"},
	{Name: "what this desk can't open it ends", File: "idem/operator/desk.go", Old: "	if d.settler = d.operator; d.decrypts {\n", New: "	if d.settler = d.operator; true {\n"},
	{Name: "only the last message of a chain is judged", File: "idem/operator/step.go", Old: "	for _, m := range messages {\n		for _, s := range d.nextOfMessage", New: "	for _, m := range messages[max(0, len(messages)-1):] {\n		for _, s := range d.nextOfMessage"},
}

// wires: what leaves a process, and when.
var wires = []Mutant{
	{Name: "a request that was frozen leaves after its deadline", File: "idem/dynamo/wire.go", Old: "ok && clock.Over(deadline, g.now()) {", New: "ok && clock.Over(deadline, g.now()) && false {"},
	{Name: "what a later release added to a record is dropped", File: "idem/dynamo/record_item.go", Old: "	w.carry(r.Unknown)\n", New: ""},
	{Name: "what a later release added to a message is dropped", File: "idem/dynamo/message_item.go", Old: "	w.carry(m.Unknown)\n", New: ""},
}

// holds: a wake-up is nobody else's while it is served.
var holds = []Mutant{
	{Name: "what a redrive buries again is redriven again", File: "idem/outbox/sqsqueue/redrive.go", Old: "	case l.kind == LetterDeadMessage && r.failed[l.dead.Message] != \"\":\n", New: "	case l.kind == LetterDeadMessage && false:\n"},
	{Name: "a message that dies again is redriven again", File: "idem/outbox/sqsqueue/redrive.go", Old: "r.redrive(ctx, l.dead, r.done[id])", New: "r.redrive(ctx, l.dead, false)"},
	{Name: "the only letter of a message is deleted as a further copy", File: "idem/outbox/sqsqueue/redrive.go", Old: "	return err == nil\n}\n\n// release", New: "	return err == nil || receipt != \"\"\n}\n\n// release"},
	{Name: "a wake-up that is served is handed out again", File: "idem/outbox/sqsqueue/consumer.go", Old: "ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: int32(c.cfg.Visibility / time.Second),\n		})\n		if", New: "ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0,\n		})\n		if"},
}

// acknowledgements: what a provider need not send again, and what counts as its word.
var acknowledgements = []Mutant{
	{Name: "a probe goes where a redirect leads", File: "functions/internal/payments/provider.go", Old: "lookUp: &http.Client{Transport: reused, CheckRedirect: call.NoRedirects}", New: "lookUp: &http.Client{Transport: reused}"},
	{Name: "a webhook about a message that is gone is done with", File: "functions/internal/payments/webhook.go", Old: "		return errOrphan\n	}\n	h.cfg", New: "		return nil\n	}\n	h.cfg"},
	{Name: "beside another key's object one without a key is the message's", File: "functions/internal/payments/lookup.go", Old: "	case !byKey && o.Key == nil:", New: "	case false:"},
	{Name: "a probe takes another key's object", File: "functions/internal/payments/lookup.go", Old: "	case o.under(key) != nil:", New: "	case false:"},
	{Name: "what another key's object stands beside was listed by the key", File: "functions/internal/payments/lookup.go", Old: "		return err != nil || o.under(key) != nil\n", New: "		_ = o\n		return err != nil\n"},
	{Name: "a decline is an end whatever else is open", File: "functions/internal/payments/lookup.go", Old: "judged[i].declined() && !alone", New: "judged[i].declined() && false && !alone"},
	{Name: "a 2xx is a success, whatever its object says", File: "functions/internal/payments/provider.go", Old: " Check: agrees(m.ID),", New: ""},
	{Name: "a lost operation is made of another key's object", File: "functions/internal/payments/shown.go", Old: "if o.Key != \"\" && o.Key != operation.Message(n) {", New: "if false && o.Key != operation.Message(n) {"},
}

// mountings: how other routers stand beside the protection.
var mountings = []Mutant{
	{Name: "echo answers a returned error when the protection is over", File: "docs/examples/echorouter/main.go", Old: "echo.WrapMiddleware(protect), answered)", New: "echo.WrapMiddleware(protect))"},
	{Name: "a protected handler of gin is in front of the protection, too", File: "docs/examples/ginrouter/main.go", Old: "	mux.Handle(\"/\", router)\n", New: "	router = protected\n	mux.Handle(\"/\", router)\n"},
}

// cutOffs: what a gRPC call that ended early proves.
var cutOffs = []Mutant{
	{Name: "a cancelled call is a client's error, which a policy may store", File: "docs/examples/rpc/status.go", Old: "	case codes.DeadlineExceeded, codes.Canceled:\n", New: "	case codes.Canceled:\n		return http.StatusRequestTimeout\n	case codes.DeadlineExceeded:\n"},
	{Name: "an unknown outcome that waits for an operator is being resolved", File: "docs/examples/rpc/status.go", Old: "	case op.Probed:\n", New: "	case op.Kind != \"\":\n"},
}

// streams: what no unary interceptor is asked about.
var streams = []Mutant{
	{Name: "a gRPC stream is not asked of the guard", File: "docs/examples/grpc/main.go", Old: "grpc.ChainStreamInterceptor(authenticatedStream, protectStreams(guard))", New: "grpc.ChainStreamInterceptor(authenticatedStream)"},
	{Name: "anybody opens a gRPC stream", File: "docs/examples/grpc/main.go", Old: "grpc.ChainStreamInterceptor(authenticatedStream, protectStreams(guard))", New: "grpc.ChainStreamInterceptor(protectStreams(guard))"},
	{Name: "a Connect stream is not asked of the guard", File: "docs/examples/connect/interceptor.go", Old: "		if err := i.guard.CheckStream(stream.Spec().Procedure); err != nil {\n", New: "		if err := i.guard.CheckStream(stream.Spec().Procedure); err != nil && false {\n"},
	{Name: "a protected procedure may be a stream", File: "docs/examples/rpc/guard.go", Old: "	if protected {\n", New: "	if protected && false {\n"},
}

// accusations: what a service is held against that the contract allows.
var accusations = []Mutant{
	{Name: "a run that freed its key is the execution", File: "idem/conform/executing.go", Old: "says() == \"executed\" && !begans[i].freed() {", New: "says() == \"executed\" {"},
	{Name: "a handler's 409 is of a request in progress", File: "idem/conform/exchange.go", Old: "r.status == http.StatusConflict && ofHandler", New: "ofHandler && false"},
	{Name: "a gateway's 503 is the service's", File: "idem/conform/exchange.go", Old: "		return s.Foreign || r.says() != \"\" || strings", New: "		return true || strings"},
	{Name: "a 503 without a status is a gateway's", File: "idem/conform/exchange.go", Old: "r.says() != \"\" || strings.HasPrefix(r.code(), \"idempotency_\")", New: "r.says() != \"\""},
	{Name: "a handler's 503 is a gateway's", File: "idem/conform/exchange.go", Old: "return s.Foreign || r.says() != \"\" || strings", New: "return s.Foreign || strings"},
}

// references: what the plain store holds to.
var references = []Mutant{
	{Name: "a mark in memory is kept after its deadline by the wall clock", File: "idem/memstore/store.go", Old: "	if err := s.late(ctx); err != nil {\n		return \"\", &storage.NotAskedError{Cause: err}\n	}\n", New: ""},
	{Name: "a message in memory is postponed to no time", File: "idem/memstore/message.go", Old: "	if at.IsZero() {\n", New: "	if at.IsZero() && id == \"\" {\n"},
	{Name: "a write in memory happens after its deadline by the wall clock", File: "idem/memstore/store.go", Old: "ok && clock.Over(deadline, s.clock()) {", New: "ok && clock.Over(deadline, s.clock()) && false {"},
	{Name: "a renewal in memory writes the whole row that was read before", File: "idem/memstore/item.go", Old: "	t.change(&r)\n", New: "	t.change(&r)\n	s.mu.Unlock()\n	time.Sleep(time.Millisecond)\n	s.mu.Lock()\n"},
	{Name: "evidence in memory writes the whole message that was read before", File: "idem/memstore/message.go", Old: "	return s.write(ctx, endMessage{", New: "	if m, err := s.Message(ctx, end.ID); err == nil && m != nil && fence.Admits(*m) && s.late(ctx) == nil {\n		time.Sleep(time.Millisecond)\n		s.mu.Lock()\n		defer s.mu.Unlock()\n		s.messages[m.ID] = *m\n		endMessage{End: copyMessageEnd(end), Fence: fence}.apply(s)\n		return nil\n	}\n	return s.write(ctx, endMessage{"},
	{Name: "a message that is postponed in memory is written whole as it was read before", File: "idem/memstore/item.go", Old: "	m.SweepAt = p.At\n", New: "	m.SweepAt = p.At\n	s.mu.Unlock()\n	time.Sleep(time.Millisecond)\n	s.mu.Lock()\n"},
}

// refusals: what a router refuses at start, and tells.
var refusals = []Mutant{
	{Name: "a protected router may be behind an exempt wildcard", File: "idem/middleware/router.go", Old: "(m.protected && added.open || m.open && protected)", New: "(m.open && protected)"},
	{Name: "an operation that ends while it is read is torn", File: "idem/middleware/status.go", Old: "		if err == nil && record != nil && record.Revision == seen.Revision {\n", New: "		if err == nil && record != nil && record.OperationID == seen.OperationID {\n"},
	{Name: "what a second look at a status meets is a 404", File: "idem/middleware/status.go", Old: "		state, unread := m.operationState(ctx, messages, *record)\n", New: "		state, err := m.operationState(ctx, messages, *record)\n		unread := err\n"},
	{Name: "without a deadline the messages of a status are waited for for ever", File: "idem/engine.go", Old: "	if deadline, bounded := ctx.Deadline(); bounded {\n", New: "	deadline, bounded := ctx.Deadline()\n	if !bounded {\n		return ctx, func() {}\n	}\n	if bounded {\n"},
	{Name: "an answer that comes too late is not told", File: "idem/middleware/record.go", Old: "		defer w.over.Store(true)\n", New: ""},
}
