// Command godriver runs requests by idem/client as a test says: package clients says how. It is the Go counterpart of the
// TypeScript client's test/driver.mjs and the Python client's tests/driver.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/internal/clients"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "godriver:", err)
		os.Exit(1)
	}
}

const lineBytesMax = 1 << 20

// serve runs each line's task at once, and writes each result when it is there.
func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineBytesMax)
	var running sync.WaitGroup
	var mu sync.Mutex
	results := json.NewEncoder(out)
	for lines.Scan() {
		var task clients.Task
		if err := json.Unmarshal(lines.Bytes(), &task); err != nil {
			return err
		}
		running.Go(func() {
			result := run(task)
			mu.Lock()
			defer mu.Unlock()
			if err := results.Encode(result); err != nil {
				fmt.Fprintln(os.Stderr, "godriver:", err)
			}
		})
	}
	running.Wait()
	return lines.Err()
}

// clock is a time of the task's own, which passes by the client's pauses only.
type clock struct {
	now    time.Time
	pauses []float64
	// cancel is called in the pause of that number, from 1.
	cancel   func()
	cancelAt int
}

func (c *clock) Pause(ctx context.Context, d time.Duration) error {
	c.pauses = append(c.pauses, millis(d))
	c.now = c.now.Add(d)
	if len(c.pauses) == c.cancelAt {
		c.cancel()
	}
	return ctx.Err()
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func run(task clients.Task) clients.Result {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if task.AbortOn != "" {
		go func() {
			if response, err := http.Get(task.AbortOn); err == nil {
				_ = response.Body.Close()
			}
			cancel()
		}()
	}
	c := &clock{now: time.UnixMilli(task.ClockMS), cancel: cancel, cancelAt: task.AbortInPause, pauses: []float64{}}
	result := clients.Result{ID: task.ID}
	answer, key, err := perform(ctx, task, c)
	result.Answer, result.Key, result.PausesMS = answer, key, c.pauses
	if err != nil {
		result.Error, result.Key = describe(err)
		result.Told = fmt.Sprintf("%v", err)
	}
	return result
}

func perform(ctx context.Context, task clients.Task, c *clock) (*clients.Answer, string, error) {
	cfg, err := configure(task, c)
	if err != nil {
		return nil, "", err
	}
	t, err := client.New(cfg)
	if err != nil {
		return nil, "", err
	}
	if task.Key != nil {
		ctx = client.WithKey(ctx, *task.Key)
	}
	if task.Operation != nil {
		ctx = client.WithOperation(ctx, *task.Operation)
	}
	req, err := http.NewRequestWithContext(ctx, task.Method, task.URL, strings.NewReader(task.Body))
	if err != nil {
		return nil, "", err
	}
	for name, value := range task.Headers {
		req.Header.Set(name, value)
	}
	// As fetch and httpx do by default here, a redirect is an answer.
	redirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	first, err := (&http.Client{Transport: t, CheckRedirect: redirect}).Do(req)
	if err != nil {
		return nil, "", err
	}
	key, final := client.KeyOf(first), first
	if task.Await {
		if final, err = t.Await(ctx, first); err != nil {
			return nil, "", err
		}
	}
	defer final.Body.Close()
	body, err := io.ReadAll(final.Body)
	if err == nil && task.Done {
		err = t.Done(ctx, *task.Operation, key)
	}
	headers := map[string]string{}
	for name := range final.Header {
		headers[strings.ToLower(name)] = final.Header.Get(name)
	}
	return &clients.Answer{First: first.StatusCode, Status: final.StatusCode, Headers: headers, Body: string(body)}, key, err
}

func configure(task clients.Task, c *clock) (client.Config, error) {
	o := task.Options
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	cfg := client.Config{
		Base: &http.Transport{}, BaseURL: o.BaseURL, Syntax: header.Syntax(o.Syntax), SendFirstSent: o.SendFirstSent,
		KeyAgeMax: ms(o.KeyAgeMaxMS), AttemptsMax: o.AttemptsMax, ElapsedMax: ms(o.ElapsedMaxMS), AttemptTimeout: ms(o.AttemptTimeoutMS),
		BackoffBase: ms(o.BackoffBaseMS), BackoffMax: ms(o.BackoffMaxMS), RetryAfterMax: ms(o.RetryAfterMaxMS), AwaitMax: ms(o.AwaitMaxMS),
		Logger: slog.New(slog.DiscardHandler),
	}
	if task.ClockMS > 0 {
		cfg.Now, cfg.Pause = func() time.Time { return c.now }, c.Pause
	}
	if task.Journal == "" {
		return cfg, nil
	}
	journal, err := client.OpenFileJournal(task.Journal, 0)
	cfg.Journal = journal
	return cfg, err
}

var reasons = map[client.Reason]string{
	client.ReasonCanceled: "canceled", client.ReasonAttempts: "attempts", client.ReasonElapsed: "elapsed",
	client.ReasonRetryAfter: "retry_after", client.ReasonPermanent: "permanent", client.ReasonRefused: "refused",
	client.ReasonUnproven: "unproven", client.ReasonUnprotected: "unprotected",
}

// describe says of an error what the other clients' errors have as fields, by the same names.
func describe(err error) (*clients.Error, string) {
	said := &clients.Error{Code: fmt.Sprintf("%T", err), Unknown: errors.Is(err, client.ErrUnknown)}
	var (
		mismatch *client.MismatchError
		unknown  *client.OutcomeUnknownError
		expired  *client.ExpiredError
		gaveUp   *client.GaveUpError
		refused  *client.KeyError
		config   *idem.ConfigError
	)
	switch {
	case errors.As(err, &mismatch):
		said.Code, said.Status, said.ProblemCode = "key_mismatch", mismatch.Problem.Status, mismatch.Problem.Code
		return said, mismatch.Key
	case errors.As(err, &unknown):
		said.Code, said.RetryAfterMS = "outcome_unknown", millis(unknown.RetryAfter)
		return said, unknown.Key
	case errors.As(err, &expired):
		said.Code, said.Status = "key_expired", expired.Problem.Status
		return said, expired.Key
	case errors.As(err, &gaveUp):
		said.Code, said.Reason, said.Attempts = "gave_up", reasons[gaveUp.Reason], gaveUp.Attempts
		said.Status, said.ProblemCode, said.RetryAfterMS = gaveUp.Status, gaveUp.Code, millis(gaveUp.RetryAfter)
		return said, gaveUp.Key
	case errors.As(err, &refused):
		said.Code = "key_refused"
	case errors.As(err, &config):
		said.Code = "config_invalid"
	}
	return said, ""
}
