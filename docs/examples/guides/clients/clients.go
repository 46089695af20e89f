// Package clients is the program of docs/guides/retrying-clients.md: a client that keeps its key until it has kept the answer.
package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/idem-go/idem-aws/idem/client"
)

// Shop orders at an API that honours keys.
type Shop struct {
	url  string
	keys *client.Transport
	http *http.Client
}

// NewShop keeps the keys of orders that are not done with in the folder, so that a restart finds them.
func NewShop(url, folder string) (*Shop, error) {
	journal, err := client.OpenFileJournal(folder, client.EntriesMaxDefault)
	if err != nil {
		return nil, err
	}
	keys, err := client.New(client.Config{Journal: journal})
	if err != nil {
		return nil, err
	}
	return &Shop{url, keys, &http.Client{Transport: keys}}, nil
}

// Order places an order under a name of the shop's own, and gives its answer to keep. A name is used for one order only.
func (s *Shop) Order(ctx context.Context, name, body string, keep func(answer string) error) error {
	ctx = client.WithOperation(ctx, name)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(r)
	if errors.Is(err, client.ErrUnknown) {
		return fmt.Errorf("the order may have been placed; call again with the same name and body: %w", err)
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := keep(string(answer)); err != nil {
		return err
	}
	return s.keys.Done(ctx, name, client.KeyOf(response)) // only now may the key be forgotten
}
