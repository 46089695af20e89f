package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client calls the deployed API as one tenant would.
type client struct {
	url, token string
	http       http.Client
}

// answer is what came back, with the body's exact bytes.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// answerBytesMax bounds what is read of an answer.
const answerBytesMax = 8 << 20

func newClient(variables Variables, token string) *client {
	return &client{url: variables[variableAPI], token: variables[token], http: http.Client{Timeout: 40 * time.Second}}
}

func (c *client) post(ctx context.Context, path, key, body string) (answer, error) {
	return c.send(ctx, http.MethodPost, path, key, []byte(body))
}

func (c *client) get(ctx context.Context, path string) (answer, error) {
	return c.send(ctx, http.MethodGet, path, "", nil)
}

func (c *client) send(ctx context.Context, method, path, key string, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.GetBody = nil // a story about duplicates sends none behind our back
	request.Header.Set("Authorization", "Bearer "+c.token)
	if key != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	return answer{status: response.StatusCode, header: response.Header, body: read}, err
}

// text is a string member of the answer's JSON object, found by its path, or "".
func (a answer) text(path ...string) string {
	var value any
	if json.Unmarshal(a.body, &value) != nil {
		return ""
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, _ := value.(string)
	return text
}
