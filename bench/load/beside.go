package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// turns is how many requests of a path each side gets, in how many slices, after so many that warm it up and are what replays
// repeat.
type turns struct{ requests, rounds, known int }

// measureBeside measures all sides over one endpoint: first requests and replays, in slices that take turns. powertools is the
// folder of its service; without it that side is left out.
func measureBeside(
	ctx context.Context, url, powertools string, size turns, callers []int, options ...func(*dynamodb.Options),
) (Part, error) {
	part := Part{Name: "beside: the same request, with the same small business row, on every side"}
	t, shapes, err := createSideTables(ctx, url)
	if err != nil {
		return part, err
	}
	kinds, err := learn(ctx, url, t, options...)
	if err != nil {
		return part, err
	}
	costs, err := sideCosts(ctx, url, powertools, t, kinds, shapes, options...)
	if err != nil {
		return part, err
	}
	all, stop, err := openSides(ctx, url, t, kinds, powertools, options...)
	if err != nil {
		return part, err
	}
	defer stop()
	for _, s := range all {
		if err := s.prepare(ctx, size.known); err != nil {
			return part, err
		}
		part.Notes = append(part.Notes, s.name+": "+s.promises)
	}
	for _, replay := range []bool{false, true} {
		for _, c := range slices.Sorted(slices.Values(callers)) {
			for i, s := range takeTurns(ctx, all, replay, size, c) {
				f := s.figure(pathName(replay), c)
				f.Side, f.Cost = all[i].name, costs[all[i].name][replay]
				part.Figures = append(part.Figures, f)
			}
		}
	}
	part.Wrong = unexpected(part.Figures)
	return part, nil
}

func pathName(replay bool) string {
	if replay {
		return "replay"
	}
	return "first"
}

// takeTurns runs a path on all sides, round after round. It returns a sample for each side.
func takeTurns(ctx context.Context, all []*side, replay bool, size turns, callers int) []sample {
	samples := make([]sample, len(all))
	for round := range size.rounds {
		from, to := round*size.requests/size.rounds, (round+1)*size.requests/size.rounds
		for turn := range all {
			i := (round + turn) % len(all)
			runtime.GC() // no side pays for the garbage of the one before
			samples[i] = samples[i].plus(drive(ctx, from, to-from, callers, all[i].sender(replay)))
		}
	}
	return samples
}

// sideCosts prices a first request and a replay of each side, by name.
func sideCosts(
	ctx context.Context, url, powertools string, t tables, kinds []kind, shapes map[string]schema.Table,
	options ...func(*dynamodb.Options),
) (map[string]map[bool]*Cost, error) {
	meter := newMetered(url, shapes)
	defer meter.close()
	all, stop, err := openSides(ctx, meter.url(), t, kinds, powertools, options...)
	if err != nil {
		return nil, err
	}
	defer stop()
	costs := map[string]map[bool]*Cost{}
	for _, s := range all {
		if err := s.prepare(ctx, costRequests); err != nil {
			return nil, err
		}
		costs[s.name] = map[bool]*Cost{}
		for _, replay := range []bool{false, true} {
			if costs[s.name][replay], err = meter.cost(ctx, s.sender(replay)); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.name, pathName(replay), err)
			}
		}
	}
	return costs, nil
}
