package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/idem-go/idem-aws/idem/header"
)

type (
	keyOfContext       struct{}
	operationOfContext struct{}
	withoutKey         struct{}
)

// WithKey gives the key to the request that is made with the context, for the Idempotency-Key header: 1 to 255 bytes,
// printable ASCII where the syntax is quoted. Use it for one request only; a second one would be taken for a retry. The key
// counts as one that was used before, since it may be that of an error: an answer that does not come from behind the key, such
// as a 401, then ends in a [GaveUpError]. [WithOperation] gives a new operation a new key.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

// WithOperation names the operation that the request is: the caller's own id for it, such as "order-17/charge", 1 to 256
// bytes. Requests with the same id have the same key, after a restart too, until [Transport.Done]. It needs Config.Journal.
func WithOperation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, operationOfContext{}, id)
}

// WithoutKey sends a request as it is, once: for endpoints that do not honour keys.
func WithoutKey(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutKey{}, true)
}

// KeyOf returns the key that the response's request was sent with, and "" where it had none.
func KeyOf(res *http.Response) string {
	return sentWith(res).key
}

// Stored reports whether a response that the transport or [Transport.Await] returned is the operation's stored, final
// answer: the same key gets it again. Keep such an answer whatever its status is, then call [Transport.Done]. It may be a 502
// that says that the operation failed, or the 500 idempotency_response_not_kept, which says that it was executed. A
// response that is not Stored may still be the operation's answer, such as the 201 of an API that marks none; or it may decide
// nothing, such as the 401 of a token that is over. A 202 of the transport's is never Stored: follow it by Await.
func Stored(res *http.Response) bool {
	return sentWith(res).stored
}

type (
	// sentKey marks the request that a response shows.
	sentKey struct{}
	// sent is what a response's request was sent with, whether nothing can have happened by it, and whether the response is
	// stored.
	sent struct {
		named
		nothing, stored bool
	}
)

func sentWith(res *http.Response) sent {
	if res == nil || res.Request == nil {
		return sent{}
	}
	with, _ := res.Request.Context().Value(sentKey{}).(sent)
	return with
}

// named is an operation and its key, in every attempt the same.
type named struct {
	key string
	// line is the value of the Idempotency-Key header.
	line string
	// firstSent is when the key was first used; zero where that is not known.
	firstSent time.Time
	// seen is the first time at which the key is known to have been there, as a date: it is at least that old.
	seen time.Time
	// resumed says that the key was used before, or may have been, perhaps by another process.
	resumed bool
	// journalled is the operation's id in the journal; "" where it is not there.
	journalled string
}

// earlier says whether the request may have been sent before, as far as it shows that by itself.
func earlier(req *http.Request) bool {
	from := sentWith(req.Response)
	_, given := req.Context().Value(keyOfContext{}).(string)
	return !from.nothing && (given || from.key != "" || len(req.Header.Values(header.NameKey)) > 0 || namesOperation(req))
}

// namesOperation says whether the request names an operation that a journal may have.
func namesOperation(req *http.Request) bool {
	id, _ := req.Context().Value(operationOfContext{}).(string)
	return 0 < len(id) && len(id) <= operationBytesMax
}

// name finds or makes the key of a request: the caller's, the journal's, that of the request which was redirected here, or
// a new one.
func (t *Transport) name(req *http.Request) (named, error) {
	op, err := t.find(req)
	if refused := (*KeyError)(nil); errors.As(err, &refused) && namesOperation(req) && !errors.Is(err, ErrJournalFull) {
		refused.Earlier = true // what the journal has of the operation was not read, or is not what was asked for
	}
	return op, err
}

func (t *Transport) find(req *http.Request) (named, error) {
	key, err := t.given(req)
	if err != nil {
		return named{}, err
	}
	if from := sentWith(req.Response); from.nothing && from.key == key {
		return from.named, nil // redirected here, and that is all that ever came of the key
	}
	now := t.date()
	op := named{key: key, seen: now, resumed: key != ""}
	if key == "" {
		op.firstSent = now
		if op.key, err = t.mint(op.firstSent); err != nil {
			return named{}, err
		}
	}
	if id, ok := req.Context().Value(operationOfContext{}).(string); ok {
		if op, err = t.begin(req.Context(), id, op, key != ""); err != nil {
			return named{}, err
		}
	}
	op.line, err = t.line(op.key)
	return op, err
}

const operationBytesMax = 256

// begin asks the journal for the key of the operation.
func (t *Transport) begin(ctx context.Context, id string, op named, given bool) (named, error) {
	if t.cfg.Journal == nil {
		return op, &KeyError{Rule: "WithOperation needs Config.Journal"}
	}
	if len(id) == 0 || len(id) > operationBytesMax {
		return op, &KeyError{Rule: fmt.Sprintf("WithOperation takes 1 to %d bytes", operationBytesMax), Earlier: given}
	}
	if _, err := t.line(op.key); err != nil {
		return op, err // what can't be sent is not journalled
	}
	fresh := Entry{Key: op.key, FirstSent: op.firstSent}
	if given {
		fresh.GivenAt = op.seen // it may be older: a time of first use would be a false proof that it is not
	}
	entry, resumed, err := t.cfg.Journal.Begin(ctx, id, fresh)
	if errors.Is(err, ErrNoEntry) && ctx.Err() != nil { // nothing is sent any more, so that nothing need be journalled
		entry, err, id = fresh, nil, ""
	}
	if err != nil {
		return op, &KeyError{Rule: "the journal has no key for the operation", Cause: err, Earlier: given}
	}
	if given && entry.Key != op.key {
		return op, &KeyError{Rule: "the journal has another key for the operation"}
	}
	if seen := entry.seen(); !seen.IsZero() {
		op.seen = seen.Round(0)
	}
	return named{key: entry.Key, firstSent: entry.FirstSent, seen: op.seen, resumed: resumed || given, journalled: id}, nil
}

// date is the clock's date alone. What Sub reads by default does not count the time for which the machine was suspended, and the
// server's records grow old meanwhile.
func (t *Transport) date() time.Time { return t.cfg.Now().Round(0) }

// given returns the key that the caller gave, "" for none.
func (t *Transport) given(req *http.Request) (string, error) {
	inContext, ok := req.Context().Value(keyOfContext{}).(string)
	if ok && inContext == "" {
		return "", &KeyError{Rule: "WithKey was given an empty key"}
	}
	inHeader, err := header.ParseKey(req.Header.Values(header.NameKey), header.KeyRule{Syntax: t.cfg.Syntax})
	switch {
	case errors.Is(err, header.ErrMissing):
		if inContext == "" {
			// A redirected request (307, 308) is the same operation still.
			return KeyOf(req.Response), nil
		}
		return inContext, nil
	case err != nil:
		return "", &KeyError{Rule: "the header is malformed", Cause: err}
	case ok && inContext != inHeader:
		return "", &KeyError{Rule: "the header and WithKey have different keys", Earlier: true}
	}
	return inHeader, nil
}

// line writes a key as a header value, and makes sure that a server reads the same key.
func (t *Transport) line(key string) (string, error) {
	line, rule := key, header.KeyRule{Syntax: header.SyntaxOpaque}
	if t.cfg.Syntax != header.SyntaxOpaque {
		line, rule.Syntax = `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)+`"`, header.SyntaxStrict
	}
	read, err := header.ParseKey([]string{line}, rule)
	if err != nil || read != key {
		return "", &KeyError{Rule: "the key can't be sent in a header", Cause: err}
	}
	return line, nil
}

// mint makes a UUIDv7 (RFC 9562 section 5.7): its time lets a server judge the key's age.
func (t *Transport) mint(now time.Time) (string, error) {
	id, err := uuid.NewRandomFromReader(t.cfg.Random)
	if err != nil {
		return "", &KeyError{Rule: "no randomness for a key", Cause: err}
	}
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(now.UnixMilli()))
	copy(id[:6], millis[2:])
	id[6] = id[6]&0x0f | 0x70
	return id.String(), nil
}

// Done ends the named operation that has the key, which is [KeyOf] of its answer: the key is forgotten, and the same id would begin a
// new operation. Call it once the answer is kept where a restart finds it, and not before: until then, asking again gets the
// same answer. Before you send under a name that may have been used, look whether its answer is kept: after Done the same id
// executes again. Where another caller has ended the operation, and the same id has begun the next one, that one goes on. It returns a
// [*KeyError] without a key: the page that a redirect leads to has none, but the Response of its Request has.
func (t *Transport) Done(ctx context.Context, id, key string) error {
	if t.cfg.Journal == nil {
		return &KeyError{Rule: "Done needs Config.Journal"}
	}
	if key == "" {
		return &KeyError{Rule: "Done needs the key of the operation's answer"}
	}
	if err := t.cfg.Journal.Done(ctx, id, key); err != nil {
		return fmt.Errorf("client: end an operation: %w", err)
	}
	return nil
}
