package mutants

const journalFile = "idem/client/filejournal.go"

// journals: a named operation has one key.
var journals = []Mutant{
	{Name: "a process that was slower keeps its own key", File: journalFile, Old: "			entry, err = j.resume(operation)\n", New: "			return fresh, false, nil\n"},
	{Name: "a journal that is full has no entry", File: journalFile, Old: "		case errors.Is(err, ErrJournalFull):\n", New: "		case false:\n"},
	{Name: "an entry of another operation is taken", File: journalFile, Old: "err != nil || kept.Operation != operation || kept.Key", New: "err != nil || kept.Key"},
	{Name: "a late end is that of the next operation", File: journalFile, Old: "	err := os.Remove(j.file(operation, key))\n", New: "	err := os.RemoveAll(j.path(operation))\n"},
	{Name: "a late end is that of the next operation in memory", File: "idem/client/journal.go", Old: "	if j.entries[operation].Key == key {\n", New: "	if key != \"\" {\n"},
	{Name: "what a stopped writer made is removed under its name", File: journalFile, Old: "	if err := j.rename(name, gone); err != nil {\n		return err\n	}\n", New: "	gone = name\n"},
	{Name: "a second caller leaves no mark", File: journalFile, Old: "		_, err = file.WriteString(\"\\n\")\n", New: "		_ = shared\n"},
	{Name: "a journal is made in place of a volume that is not mounted", File: journalFile, Old: "	err = os.Mkdir(j.dir, 0o700)\n", New: "	err = os.MkdirAll(j.dir, 0o700)\n"},
	{Name: "a journal behind a link is what each client makes of it", File: journalFile, Old: "ToSlash(dir), \"/\"), \"..\") {", New: "ToSlash(dir), \"/\"), \"..\") && false {"},
	{Name: "a power cut makes an entry unreadable", File: journalFile, Old: "const marks = \"\\n\\x00\"", New: "const marks = \"\\n\""},
	{Name: "a power cut erases a second caller", File: journalFile, Old: "len(text) < len(raw), nil", New: "bytes.HasSuffix(raw, []byte(\"\\n\")), nil"},
	{Name: "what net/http sent again counts as sent once", File: "idem/client/transport.go", Old: "s.budget.attempts == 1 && s.sends.Load() <= 1 && s", New: "s.budget.attempts == 1 && s"},
	{Name: "an ended context proves that no earlier call was sent", File: "idem/client/transport.go", Old: "if s.unused(req.Context()) {", New: "if s != nil {"},
	{Name: "a journal that can't be read proves that no earlier call was sent", File: "idem/client/key.go", Old: "refused.Earlier = true // what", New: "refused.Earlier = false // what"},
	{Name: "a certificate that fails when net/http sends again proves that nothing was sent", File: "idem/client/transport.go", Old: "s.sends.Load() == 0 && s.first(ctx)", New: "s.first(ctx)"},
	{Name: "a key is sent at any age", File: "idem/client/transport.go", Old: "age > s.t.cfg.KeyAgeMax || age", New: "age > s.t.cfg.KeyAgeMax<<20 || age"},
	{Name: "a key from the future is young", File: "idem/client/transport.go", Old: " || age < -idem.FirstSentSkew {", New: " || age < -idem.FirstSentSkew<<20 {"},
	{Name: "a body leaves whatever its key's age is by then", File: "idem/client/transport.go", Old: "heldBack{body, s.tooOld}", New: "body"},
	{Name: "an answer that is not stored speaks for a lost attempt", File: "idem/client/answer.go", Old: "	return replayed || says(", New: "	return replayed || says(head, header.NameStatus, string(idem.OutcomeExecuted)) || says("},
	{Name: "a response that is too large speaks for a lost attempt", File: "idem/client/answer.go", Old: "		return verdictUnproven // asking again", New: "		return verdictAnswer // asking again"},
	{Name: "a problem that writes another member otherwise has no code", File: "idem/client/answer.go", Old: "	return idem.Problem{Code: said.Code}\n", New: "	return idem.Problem{}\n"},
	{Name: "a 202 that protects nothing may be sent again", File: "idem/client/await.go", Old: "	s.unprotected = unprotected(res.Header)\n", New: ""},
	{Name: "a torn answer that protects nothing is sent again", File: "idem/client/transport.go", Old: "	s.unprotected = a != nil && unprotected(a.res.Header) // also", New: "	s.unprotected = err == nil && unprotected(a.res.Header) // also"},
	{Name: "what a server behind the server protects nothing of is sent again", File: "idem/client/answer.go", Old: "strings.SplitSeq(strings.Join(head.Values(name), \",\"), \",\")", New: "strings.SplitSeq(head.Get(name), \";\")"},
	{Name: "a bound that is none reads nothing", File: "internal/bounded/bounded.go", Old: "min(bytesMax, math.MaxInt64-1)+1", New: "min(bytesMax, math.MaxInt64)+1"},
	{Name: "bounds that are none let a key grow too old", File: "idem/client/config.go", Old: "c.KeyAgeMax-c.AttemptTimeout <= c.ElapsedMax {", New: "c.KeyAgeMax <= c.ElapsedMax+c.AttemptTimeout {"},
	{Name: "a long answer that stops is waited for without an end", File: "idem/client/transport.go", Old: "	s.timer.Reset(s.silenceMax)\n", New: ""},
	{Name: "a reader that takes its time ends its answer", File: "idem/client/transport.go", Old: "	n, err := s.ReadCloser.Read(p)\n	s.timer.Stop()\n", New: "	n, err := s.ReadCloser.Read(p)\n"},
	{Name: "a server that replays outweighs one that does not know", File: "idem/client/answer.go", Old: " && !says(head, header.NameStatus, string(idem.OutcomeUnknown)) && ", New: " && "},
	{Name: "a server that does not know is heard where it is the only one", File: "idem/client/answer.go", Old: "	unknown := kept(idem.OutcomeUnknown)\n", New: "	unknown := h.Get(header.NameStatus) == string(idem.OutcomeUnknown)\n"},
	{Name: "the first of two servers says how long to wait", File: "idem/client/backoff.go", Old: "		longest = max(longest, wait(piece, now))\n", New: "		if longest == 0 {\n			longest = wait(piece, now)\n		}\n"},
	{Name: "another port of the host gets the credentials", File: "idem/client/await.go", Old: "cmp.Or(u.Port(), ports[scheme])", New: "cmp.Or(ports[scheme], u.Port())"},
	{Name: "another host gets the credentials", File: "idem/client/await.go", Old: "strings.ToLower(u.Hostname()), cmp", New: "strings.ToLower(u.Scheme), cmp"},
	{Name: "a redirect that protects nothing may be sent again", File: "idem/client/transport.go", Old: "			if unprotected(from.Header) {\n", New: "			if false {\n"},
}

// typeScripts: what the client in TypeScript sends, and under which key.
var typeScripts = []Mutant{
	{Name: "a Buffer's bytes are the caller's to change", File: "idem/client/typescript/src/client.ts", Old: "  return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();\n", New: "  return body.slice();\n"},
	{Name: "a late end is that of the next operation to the client in TypeScript", File: "idem/client/typescript/src/journal.ts", Old: "    if (this.#entries.get(operation)?.entry.key === key) this", New: "    if (key) this"},
	{Name: "a journal is made in place of a volume that is not mounted by the client in TypeScript", File: "idem/client/typescript/src/file-journal.ts", Old: "await mkdir(directory, { mode: 0o700 })", New: "await mkdir(directory, { mode: 0o700, recursive: true })"},
	{Name: "a journal behind a link is what the client in TypeScript makes of it", File: "idem/client/typescript/src/file-journal.ts", Old: "directory.split(\"/\").includes(\"..\")", New: "directory.split(\"/\").includes(\"...\")"},
	{Name: "a power cut makes an entry unreadable to the client in TypeScript", File: "idem/client/typescript/src/file-journal.ts", Old: "/[\\n\\0]+$/", New: "/\\n+$/"},
	{Name: "null is a key that calls share", File: "idem/client/typescript/src/key.ts", Old: "if (typeof key !== \"string\") throw", New: "if (typeof key === \"undefined\") throw"},
	{Name: "null is a name that calls share", File: "idem/client/typescript/src/client.ts", Old: "  if (typeof name !== \"string\") return false;\n", New: "  if (typeof name !== \"string\") return name !== undefined;\n"},
	{Name: "a Location is a part of a query", File: "idem/client/typescript/src/client.ts", Old: " && /^https?:\\/\\/[^/?#\\s]+(\\/[^?#\\s]*[^/?#\\s])?$/i.test(url);", New: " && !url.endsWith(\"/\");"},
	{Name: "a reason phrase makes an answer an error", File: "idem/client/typescript/src/answer.ts", Old: ".test(a.statusText) ? a.statusText : \"\";", New: ".test(a.statusText) ? a.statusText : a.statusText;"},
	{Name: "a torn answer that protects nothing is sent again by the client in TypeScript", File: "idem/client/typescript/src/client.ts", Old: "      unprotected = protectsNothing(response.headers);\n", New: "      unprotected = false;\n"},
	{Name: "a 202 that protects nothing may be sent again by the client in TypeScript", File: "idem/client/typescript/src/client.ts", Old: "    const unprotected = protectsNothing(accepted.headers);\n", New: "    const unprotected = false;\n"},
	{Name: "what a server behind the server protects nothing of is sent again by the client in TypeScript", File: "idem/client/typescript/src/answer.ts", Old: ".split(\",\").map((value)", New: ".split(\";\").map((value)"},
}

// pythons: what the client in Python takes for proof.
var pythons = []Mutant{
	{Name: "an answer that nobody can decode is the operation's end", File: "idem/client/python/src/idem_client/machine.py", Old: "            except (httpx.DecodingError, AnswerTooLongError) as cause:\n", New: "            except httpx.DecodingError:\n                pass\n            except AnswerTooLongError as cause:\n"},
	{Name: "a worker whose time is up sends again in Python", File: "idem/client/python/src/idem_client/machine.py", Old: " or not isinstance(cause, _OF_THE_NETWORK)", New: ""},
	{Name: "what ends a pause in Python tells no key", File: "idem/client/python/src/idem_client/machine.py", Old: "    reply = yield Pause(wait)\n    if isinstance(reply, Lost):\n", New: "    reply = yield Pause(wait)\n    if False:\n"},
	{Name: "an answer that is compressed is as long as it likes", File: "idem/client/python/src/idem_client/answer.py", Old: "            bound(content, bytes_max)\n", New: ""},
	{Name: "an answer is decompressed whole before it is too long", File: "idem/client/python/src/idem_client/answer.py", Old: "_SLICES = {\"gzip\": 1 << 10,", New: "_SLICES = {\"gzip\": 1 << 30,"},
	{Name: "a power cut makes an entry unreadable to the client in Python", File: "idem/client/python/src/idem_client/journal.py", Old: "raw.rstrip(b\"\\n\\0\")", New: "raw.rstrip(b\"\\n\")"},
	{Name: "an error that leaves its process breaks the pool that it left", File: "idem/client/python/src/idem_client/errors.py", Old: "        return self._key\n\n    def __reduce__(", New: "        return self._key\n\n    def _reduced("},
	{Name: "what the caller was handling says what became of a request", File: "idem/client/python/src/idem_client/machine.py", Old: "(link.__context__ if isinstance(link, httpcore.ConnectError) else None)", New: "link.__context__"},
	{Name: "a real server's certificate leaves open what was sent", File: "idem/client/python/src/idem_client/machine.py", Old: "(link.__context__ if isinstance(link, httpcore.ConnectError) else None)", New: "None"},
	{Name: "a key from the future is young to the client in Python", File: "idem/client/python/src/idem_client/machine.py", Old: " or age < -_KEY_AHEAD_MAX:", New: ":"},
	{Name: "a late end is that of the next operation to the client in Python", File: "idem/client/python/src/idem_client/journal.py", Old: "            if kept is not None and kept.key == key:\n", New: "            if kept is not None:\n"},
	{Name: "the client in Python sends what grew too old while it connected", File: "idem/client/python/src/idem_client/transport.py", Old: "            self._look()\n", New: "            pass\n"},
	{Name: "a journal is made in place of a volume that is not mounted by the client in Python", File: "idem/client/python/src/idem_client/journal.py", Old: "directory.mkdir(mode=0o700, exist_ok=True)", New: "directory.mkdir(mode=0o700, parents=True, exist_ok=True)"},
	{Name: "an entry stays in a disk's own memory on macOS", File: "idem/client/python/src/idem_client/journal.py", Old: "        if full is not None:\n", New: "        if False:\n"},
	{Name: "a journal behind a link is what the client in Python makes of it", File: "idem/client/python/src/idem_client/journal.py", Old: " or \"..\" in path.parts:", New: ":"},
	{Name: "a torn answer that protects nothing is sent again by the client in Python", File: "idem/client/python/src/idem_client/machine.py", Old: "        op.unprotected = head is not None and protects_nothing(head.headers)\n", New: "        op.unprotected = answer is not None and protects_nothing(answer.headers)\n"},
	{Name: "a 202 that protects nothing may be sent again by the client in Python", File: "idem/client/python/src/idem_client/machine.py", Old: "    op.unprotected = protects_nothing(accepted.headers)\n", New: ""},
	{Name: "what a server behind the server protects nothing of is sent again by the client in Python", File: "idem/client/python/src/idem_client/answer.py", Old: ".split(\",\") if value", New: ".split(\";\") if value"},
}

// shops: what the guide's client takes for its order's answer.
var shops = []Mutant{
	{Name: "an order whose answer is kept is placed again", File: "docs/examples/guides/clients/clients.go", Old: "	case !found:\n", New: "	case !found || true:\n"},
	{Name: "any answer decides about an order", File: "docs/examples/guides/clients/clients.go", Old: "decides, response.StatusCode) {", New: "decides, response.StatusCode) && false {"},
	{Name: "a stored answer decides nothing about an order", File: "docs/examples/guides/clients/clients.go", Old: "if !client.Stored(response) && ", New: "if "},
	{Name: "an order whose key protects nothing is to be sent again", File: "docs/examples/guides/clients/clients.go", Old: "mayRepeat(err); may {\n", New: "mayRepeat(err); may && false {\n"},
	{Name: "an answer that breaks off says nothing of its order", File: "docs/examples/guides/clients/clients.go", Old: "and broke off\n		return Answer{}, &UndecidedError{key, protected, err}\n", New: "and broke off\n		return Answer{}, err\n"},
	{Name: "an answer that can't be kept says nothing of its order", File: "docs/examples/guides/clients/clients.go", Old: "kept, or not\n		return Answer{}, &UndecidedError{key, protected, err}\n", New: "kept, or not\n		return Answer{}, err\n"},
	{Name: "an order whose key protects nothing may be sent again because its answer can't be kept", File: "docs/examples/guides/clients/clients.go", Old: "protected := err == nil && protects(response)", New: "protected := true"},
	{Name: "a mark on an order keeps nothing from being sent", File: "docs/examples/guides/clients/clients.go", Old: "	case found && answer.Status == 0:\n", New: "	case found && false:\n"},
	{Name: "a mark that could not be kept is forgotten", File: "docs/examples/guides/clients/clients.go", Old: "	s.unkept.Store(name, undecided.Key)\n", New: ""},
	{Name: "a server behind the server does not count for an order's protection", File: "docs/examples/guides/clients/clients.go", Old: "strings.Join(response.Header.Values(\"Idempotency-Status\"), \",\")", New: "response.Header.Get(\"Idempotency-Status\")"},
	{Name: "an order's answer without an end is read to its end", File: "docs/examples/guides/clients/clients.go", Old: "io.ReadAll(http.MaxBytesReader(nil, response.Body, answerBytesMax))", New: "io.ReadAll(io.LimitReader(response.Body, answerBytesMax))"},
	{Name: "nothing marks an order that is not to be sent again", File: "docs/examples/guides/clients/clients.go", Old: "!errors.As(err, &undecided) || undecided.Protected {", New: "!errors.As(err, &undecided) || undecided.Protected || true {"},
}
