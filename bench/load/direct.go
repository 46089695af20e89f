package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// measureDirect drives the service in this process, over the endpoint's DynamoDB: the paths of the gateway without API Gateway,
// Lambda and a worker.
func measureDirect(ctx context.Context, url string, requests int, callers []int, options ...func(*dynamodb.Options)) (Part, error) {
	part := Part{Name: "direct: the handler in this process, DynamoDB an emulator"}
	t, err := createTables(ctx, url, "load-direct")
	if err != nil {
		return part, err
	}
	measured, err := newApp(ctx, newClient(url, options...), t)
	if err != nil {
		return part, err
	}
	traffic := newTraffic(inProcessClient(measured))
	if warm := drive(ctx, 0, requests/10+1, 1, traffic.pay); len(warm.errors) > 0 {
		return part, fmt.Errorf("warm up: %v", warm.errors)
	}
	part.Figures = traffic.figures(ctx, requests, callers)
	part.Wrong = unexpected(part.Figures)
	costs, err := directCosts(ctx, url, t, options...)
	for i, f := range part.Figures {
		part.Figures[i].Cost = costs[f.Path]
	}
	return part, err
}

// directCosts prices a request of each path.
func directCosts(ctx context.Context, url string, t tables, options ...func(*dynamodb.Options)) (map[string]*Cost, error) {
	meter := newMetered(url, t.shapes())
	defer meter.close()
	app, err := newApp(ctx, newClient(meter.url(), options...), t)
	if err != nil {
		return nil, err
	}
	traffic := newTraffic(inProcessClient(app))
	costs := map[string]*Cost{}
	for _, r := range traffic.routes() {
		if costs[r.name], err = meter.cost(ctx, r.send); err != nil {
			return costs, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return costs, nil
}
