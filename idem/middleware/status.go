package middleware

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/internal/principal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Messages reads outbox messages strongly; nil where there is none. The stores implement it.
type Messages interface {
	// Message returns the message with the id, or nil where there is none.
	Message(ctx context.Context, id idem.MessageID) (*storage.Message, error)
}

// The states of an operation as its status shows them: record and message together.
const (
	statusPending    = "pending"
	statusInProgress = "in_progress"
	statusUnknown    = "unknown"
	statusCompleted  = "completed"
	statusFailed     = "failed"
)

// codeOperationNotFound: 404. Another tenant's operation is as absent as one that never was.
const codeOperationNotFound = "operation_not_found"

// retryStatus is when to ask for an operation again that is not final.
const retryStatus = time.Second

// errChain: a record waits for a message that is not there.
var errChain = errors.New("middleware: the operation waits for a message that does not exist")

// endShown is how long after the last message of a chain its record may still be shown as pending: it was read just before its end, or the
// store shows the writes of one transaction one after the other. It is far more than either takes, and than clocks differ by.
const endShown = time.Minute

// Status returns the endpoint of an operation's status, which the Location of a 202 names: for GET at
// Config.OperationsPath, with the operation's id as the last segment of the path. It authenticates, and answers 200 with
// the state, the times and, once there is one, the final response; 404 for an operation that the tenant does not have, or
// that is another principal's where the policy binds keys to one; 410 for one that has expired and is kept as gone. It reads messages for operations that are pending; messages may be
// nil if no operation is deferred.
func (m *Middleware) Status(messages Messages) http.Handler {
	return m.Read(func(ctx context.Context, r *Request) (idem.Response, error) {
		asking, cancel := m.engine.InTime(ctx)
		defer cancel()
		record, state, err := m.shown(asking, messages, r)
		if errors.Is(err, errChain) { // a loss has torn its transaction: nobody else finds it
			m.cfg.Logger.ErrorContext(ctx, "outbox.message_gone", "operation", record.Operation, "tenant", record.Tenant,
				"operation_id", record.OperationID, "alarm", true)
		}
		switch {
		case err != nil:
			return idem.Response{}, err
		case record == nil:
			return idem.NewProblem(http.StatusNotFound, codeOperationNotFound, "Not Found", "There is no such operation.").Response(), nil
		}
		response, err := idem.JSON(http.StatusOK, viewOperation(*record, state))
		response = response.With("Cache-Control", "no-store") // the next answer may be another one
		if err == nil && !record.State.Final() {
			response = response.With(header.NameRetryAfter, header.FormatRetryAfter(retryStatus))
		}
		return response, err
	})
}

// shown reads the operation that a request names, and what clients call its state; nil where the identity has none of that name. Its error
// is errChain, beside the record, where the record waits for a message that is not there. A process may be frozen between the two reads, for
// as long as it takes the operation to end. So such a record is read once more, after its messages: only one that nobody has written since
// is torn. That is no further look-up of the client's, and asks no quota.
func (m *Middleware) shown(ctx context.Context, messages Messages, r *Request) (*storage.Record, string, error) {
	path := r.HTTP.URL.Path
	id := idem.OperationID(path[strings.LastIndexByte(path, '/')+1:])
	record, err := m.engine.Status(ctx, r.Identity.Tenant, id)
	for err == nil && record != nil && (record.Principal == "" || record.Principal == principal.Stored(record.Tenant, r.Identity.Principal)) {
		state, unread := m.operationState(ctx, messages, *record)
		if !errors.Is(unread, errChain) {
			return record, state, unread
		}
		seen := *record
		record, err = m.engine.StatusAgain(ctx, r.Identity.Tenant, id)
		if err == nil && record != nil && record.Revision == seen.Revision {
			return record, "", errChain
		}
	}
	return nil, "", err
}

// operationState is what clients call the state of a record, together with the message that it waits for. What was only
// observed is unknown, as it is to a retry: nobody executes it.
func (m *Middleware) operationState(ctx context.Context, messages Messages, r storage.Record) (string, error) {
	if m.engine.OnlyObserved(r) {
		return statusUnknown, nil
	}
	switch r.State {
	case storage.StateCompleted:
		return statusCompleted, nil
	case storage.StateFailed:
		return statusFailed, nil
	case storage.StateUnknown:
		return statusUnknown, nil
	case storage.StateInProgress, storage.StateFailedRetryable:
		return statusInProgress, nil
	case storage.StatePending:
	}
	if messages == nil {
		return statusPending, nil
	}
	open, err := openMessage(ctx, messages, r.OperationID)
	if err != nil {
		return "", err
	}
	switch open.State {
	case storage.MessageClaimed:
		return statusInProgress, nil
	case storage.MessageUnknown, storage.MessageDead:
		return statusUnknown, nil
	case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled: // what ended it ended the record, or inserted the next one
		if m.engine.Since(open.DoneAt) > endShown {
			return "", errChain
		}
	case storage.MessagePending, storage.MessageEvidenced: // nobody holds it: its call, or its settlement, is to come
	}
	return statusPending, nil
}

// openMessage is the message of the operation's chain that is open, or its last.
func openMessage(ctx context.Context, messages Messages, id idem.OperationID) (*storage.Message, error) {
	var last *storage.Message
	for n := 1; ; n++ {
		next := id.Message(n)
		if _, _, err := next.Operation(); err != nil { // past the longest chain
			return last, nil
		}
		m, err := messages.Message(ctx, next)
		switch {
		case err != nil:
			return nil, &idem.UnavailableError{RetryAfter: retryAfterDefault, Cause: fmt.Errorf("middleware: message: %w", err)}
		case m == nil && last == nil:
			return nil, errChain
		case m == nil:
			return last, nil
		case !m.State.Final():
			return m, nil
		}
		last = m
	}
}

// operationView is an operation's status; its response is null until it is final.
type operationView struct {
	ID          idem.OperationID `json:"id"`
	State       string           `json:"state"`
	CreatedAt   string           `json:"created_at"`
	CompletedAt *string          `json:"completed_at"`
	Response    *responseView    `json:"response"`
}

// responseView carries the exact bytes of the body: as a string where they are UTF-8, else in base64, as its encoding then
// says. Lines of one header are joined with a comma.
type responseView struct {
	Status       int               `json:"status"`
	Headers      map[string]string `json:"headers"`
	Body         string            `json:"body"`
	BodyEncoding string            `json:"body_encoding,omitempty"`
}

// milliseconds is RFC 3339 in UTC with milliseconds.
const milliseconds = "2006-01-02T15:04:05.000Z"

func viewOperation(r storage.Record, state string) operationView {
	v := operationView{ID: r.OperationID, State: state, CreatedAt: r.CreatedAt.UTC().Format(milliseconds)}
	if !r.DoneAt.IsZero() {
		done := r.DoneAt.UTC().Format(milliseconds)
		v.CompletedAt = &done
	}
	if r.State.Final() {
		v.Response = viewResponse(r.Response)
	}
	return v
}

func viewResponse(r idem.Response) *responseView {
	v := &responseView{Status: r.Status, Headers: make(map[string]string, len(r.Header)), Body: string(r.Body)}
	for _, field := range r.Header {
		name := http.CanonicalHeaderKey(field.Name)
		if before, repeated := v.Headers[name]; repeated {
			v.Headers[name] = before + ", " + field.Value
		} else {
			v.Headers[name] = field.Value
		}
	}
	if !utf8.Valid(r.Body) {
		v.Body, v.BodyEncoding = base64.StdEncoding.EncodeToString(r.Body), "base64"
	}
	return v
}
