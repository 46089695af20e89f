package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// removeMessage lets native TTL remove an earlier message of a chain that ends. Without the condition DynamoDB would make a row of one
// that is gone, with nothing in it that could be read.
func (t *transaction) removeMessage(s *Store, id storage.MessageID, at time.Time) {
	w := &writer{item: item{}}
	w.expiry(schema.TTL, at, true)
	e := newExpression()
	there := e.exists(messageKey)
	update := e.assign([]string{schema.TTL}, w.item)
	t.update(isEarlier, types.Update{
		TableName: &s.cfg.OutboxTable, Key: item{messageKey: stringValue(string(id))}, UpdateExpression: &update,
		ConditionExpression: all(there), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
}

// earlierGoneError says that nothing but earlier messages that are gone, the items at these positions, was in a settlement's way.
type earlierGoneError struct{ items []int }

// Error counts them.
func (e *earlierGoneError) Error() string {
	return fmt.Sprintf("%d earlier messages of the chain are gone", len(e.items))
}

// earlierGone are the earlier messages among the store's own items whose condition failed.
func (t *transaction) earlierGone(own []types.CancellationReason) (gone []int) {
	for i, reason := range own {
		if t.own[i] == isEarlier && text(reason.Code) == reasonConditionFailed {
			gone = append(gone, i)
		}
	}
	return gone
}

// without is the transaction without some of the store's own items.
func (t *transaction) without(gone []int) *transaction {
	rest := &transaction{}
	for i, item := range t.items {
		if slices.Contains(gone, i) {
			continue
		}
		if i < len(t.own) {
			rest.own = append(rest.own, t.own[i])
		}
		rest.items = append(rest.items, item)
	}
	return rest
}

// ending sends a settlement that marks earlier messages. Where some are gone the transaction has done nothing, and is sent without
// them, under a token of its own. From then on only that is sent, as it may have happened.
type ending struct {
	s     *Store
	doing string
	mu    sync.Mutex // guards what may change
	t     *transaction
	token string
	send  func(context.Context) error
}

func (s *Store) prepareEnding(doing string, t *transaction, token string) (func(context.Context) error, error) {
	send, err := s.prepare(doing, t, token)
	if err != nil {
		return nil, err
	}
	e := &ending{s: s, doing: doing, t: t, token: token, send: send}
	return e.marked, nil
}

// marked sends until nothing but what is left decides.
func (e *ending) marked(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		err := e.send(ctx)
		gone, ok := errors.AsType[*earlierGoneError](err)
		if !ok {
			return err
		}
		t, token := e.t.without(gone.items), tokenAfter(e.token)
		send, err := e.s.prepare(e.doing, t, token)
		if err != nil {
			return err
		}
		e.t, e.token, e.send = t, token, send
	}
}

// tokenAfter is the token of what a transaction becomes: the same each time.
func tokenAfter(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:tokenCharactersMax]
}
