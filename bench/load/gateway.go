package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/localstack/provider"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// gateway is a deployed stack as its clients reach it.
type gateway struct {
	traffic  *traffic
	provider provider.Control
	// settleWithin bounds the wait until every payment has its final answer.
	settleWithin time.Duration
}

// openGateway reads the env file of a stack.
func openGateway(path string, settleWithin time.Duration) (*gateway, error) {
	variables, err := stack.ReadVariables(path)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"API_URL", "TENANT_A_TOKEN", "PROVIDER_URL"} {
		if variables[name] == "" {
			return nil, fmt.Errorf("--env %s: no %s: bring a stack up with `make up`, or leave the part gateway out with --part", path, name)
		}
	}
	return &gateway{
		traffic: newTraffic(client{
			base: variables["API_URL"], header: http.Header{"Authorization": {"Bearer " + variables["TENANT_A_TOKEN"]}},
			// A connection for each request: a reused one may be closed by the other side, and nothing is sent twice here.
			http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		}),
		provider: provider.Control{URL: variables["PROVIDER_URL"]}, settleWithin: settleWithin,
	}, nil
}

func newTraffic(c client) *traffic {
	return &traffic{client: c, run: "load-" + strings.ToLower(rand.Text()[:8])}
}

// measure sends the traffic, waits until every payment that was accepted has its final answer, and counts the effects at the
// provider.
func (g *gateway) measure(ctx context.Context, requests int, callers []int) (Part, error) {
	part := Part{Name: "gateway: through API Gateway to the deployed functions"}
	before, err := g.provider.Charges(ctx)
	if err != nil {
		return part, fmt.Errorf("count effects: %w", err)
	}
	if code := g.traffic.pay(ctx, 0); code != "" { // the functions' first start
		part.Wrong = append(part.Wrong, "first payment: "+code)
	}
	part.Figures = g.traffic.figures(ctx, requests, callers)
	part.Wrong = append(part.Wrong, unexpected(part.Figures)...)
	took, open, err := g.settle(ctx)
	if err != nil {
		return part, err
	}
	if open > 0 {
		part.Wrong = append(part.Wrong, fmt.Sprintf("%d of %d payments have no final answer after %s", open, len(g.traffic.accepted), g.settleWithin))
	}
	charges, err := g.provider.Charges(ctx)
	if err != nil {
		return part, fmt.Errorf("count effects: %w", err)
	}
	made, wrong := effects(since(before, charges), g.traffic.sent, g.traffic.accepted)
	part.Wrong = append(part.Wrong, wrong...)
	part.Notes = []string{fmt.Sprintf("effects: %d keys sent, %d accepted, %d charges at the provider; the last final answer came %s after the last request",
		len(g.traffic.sent), len(g.traffic.accepted), made, took.Round(time.Second))}
	return part, nil
}

// settleCallers is how many operations are asked for at once while they settle, and settlePoll how long a round lasts at least.
const (
	settleCallers = 4
	settlePoll    = time.Second
)

// settle waits for final answers. It returns how long that took, and how many payments have none at the end.
func (g *gateway) settle(ctx context.Context) (took time.Duration, open int, err error) {
	begun := time.Now()
	waiting := g.traffic.accepted
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for {
		if waiting = g.unsettled(ctx, waiting); len(waiting) == 0 || time.Since(begun) > g.settleWithin {
			return time.Since(begun), len(waiting), ctx.Err()
		}
		select {
		case <-ctx.Done():
			return time.Since(begun), len(waiting), ctx.Err()
		case <-tick.C:
		}
	}
}

// unsettled are those of the payments that have no final answer. One that could not be asked for has none.
func (g *gateway) unsettled(ctx context.Context, payments []payment) (waiting []payment) {
	settled := make([]bool, len(payments))
	var asking errgroup.Group
	asking.SetLimit(settleCallers)
	for i, p := range payments {
		asking.Go(func() error {
			settled[i], _ = g.traffic.status(ctx, p)
			return nil
		})
	}
	_ = asking.Wait() // no call returns an error
	for i, p := range payments {
		if !settled[i] {
			waiting = append(waiting, p)
		}
	}
	return waiting
}
