package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Files of the checkout that facts are read from, each held by a test of its own.
const (
	costFile     = "bench/cost/testdata/dynoxide.txt"
	webhookFile  = "functions/internal/payments/testdata/webhook-cost.txt"
	templateFile = "infra/stack/testdata/http-gateway.template.json"
)

// Units are what one pass of a path consumes: write units by what they are consumed on, and read units.
type Units struct {
	Records  float64 `json:"records"`
	Messages float64 `json:"messages"`
	Indexes  float64 `json:"indexes"`
	Business float64 `json:"business"`
	Counters float64 `json:"counters"`
	Reads    float64 `json:"reads"`
}

// Writes are all write units.
func (u Units) Writes() float64 { return u.Records + u.Messages + u.Indexes + u.Business + u.Counters }

// facts are what a plan is computed from, besides the traffic.
type facts struct {
	// costs are the units of bench/cost, by operation and response, and by path.
	costs map[string]map[string]Units
	// webhook is what a webhook of a settled payment costs, the usual one.
	webhook  Units
	deployed Deployed
}

// Deployed is what the stack sets today.
type Deployed struct {
	// OutboxShards are those of each queue of the outbox index, LedgerShards those of an hour of the ledger index.
	OutboxShards int `json:"outbox_shards"`
	LedgerShards int `json:"ledger_shards"`
	// DriftParts is how many pieces of the drift job run at a time.
	DriftParts int `json:"drift_parts"`
	// StreamBatch and StreamParallel are the stream mapping's: records of an invocation, and batches of a shard at once.
	StreamBatch    float64 `json:"stream_batch"`
	StreamParallel float64 `json:"stream_parallel"`
	QueueBatch     float64 `json:"queue_batch"`
	// SweepRuns is how often the sweep, and the reconciler, is called each minute: each call has shards of its own.
	SweepRuns int `json:"sweep_runs"`
	// MemoryMiB is each function's, by name.
	MemoryMiB map[string]float64 `json:"memory_mib"`
	// Reserved are the executions that are reserved for each function, and the most that it gets.
	Reserved map[string]float64 `json:"reserved"`
	// WarmReads and WarmWrites are what records, messages, payments and their indexes, and quota counters, serve at once, each.
	WarmReads  float64 `json:"warm_reads"`
	WarmWrites float64 `json:"warm_writes"`
	// WakeUpsMax is how many wake-ups the sweep lets wait, with outbox=sqs.
	WakeUpsMax float64 `json:"wake_ups_max"`
	// Requests are what the API lets through a second of all callers, and Payments of what makes payments.
	Requests float64 `json:"requests_per_second"`
	Payments float64 `json:"payments_per_second"`
	// NewKeys and LookUps are what each tenant may have a second, and ActiveKeys of the last ActiveFor.
	NewKeys    float64       `json:"quota_new_keys"`
	LookUps    float64       `json:"quota_look_ups"`
	ActiveKeys float64       `json:"quota_active_keys"`
	ActiveFor  time.Duration `json:"active_for_ns"`
}

func readFacts(root string) (facts, error) {
	var f facts
	for name, parse := range map[string]func([]byte) error{
		costFile:     func(text []byte) (err error) { f.costs, err = parseCosts(string(text)); return err },
		webhookFile:  func(text []byte) (err error) { f.webhook, err = parseWebhook(string(text)); return err },
		templateFile: func(text []byte) (err error) { f.deployed, err = parseTemplate(text); return err },
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = parse(text)
		}
		if err != nil {
			return facts{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return f, nil
}

// cells are separated by two spaces or more; names have single ones.
var cells = regexp.MustCompile(` {2,}`)

// costColumns are bench/cost's, after the path's name.
var costColumns = []string{"records", "messages", "indexes", "business", "W", "R", "$"}

// parseCosts reads the golden of bench/cost, and checks each line's total.
func parseCosts(text string) (map[string]map[string]Units, error) {
	costs := map[string]map[string]Units{}
	var group map[string]Units
	for line := range strings.Lines(text) {
		row := cells.Split(strings.TrimSpace(line), -1)
		switch {
		case len(row) <= len(costColumns):
			continue // the legend, and the lines between groups
		case strings.Join(row[1:1+len(costColumns)], " ") == strings.Join(costColumns, " "):
			group = map[string]Units{}
			costs[row[0]] = group
			continue
		case group == nil:
			return nil, fmt.Errorf("a row before the first head: %q", line)
		}
		var of [6]float64
		for i := range of {
			if row[1+i] == "." {
				continue
			}
			var err error
			if of[i], err = strconv.ParseFloat(row[1+i], 64); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
		}
		u := Units{Records: of[0], Messages: of[1], Indexes: of[2], Business: of[3], Reads: of[5]}
		if u.Writes() != of[4] {
			return nil, fmt.Errorf("%q: W is not the sum", line)
		}
		group[row[0]] = u
	}
	for _, need := range []struct{ group, path string }{
		{operation, pathFirst}, {operation, pathReplay}, {operation, pathStream}, {operation, pathQueue},
	} {
		if _, ok := costs[need.group][need.path]; !ok {
			return nil, fmt.Errorf("no path %q of %q", need.path, need.group)
		}
	}
	return costs, nil
}

// settledWebhook is the usual one: a worker has settled the payment before the provider tells of it.
const settledWebhook = "what is no news"

var callUnits = regexp.MustCompile(`([0-9.]+)R ([0-9.]+)W`)

func parseWebhook(text string) (Units, error) {
	for line := range strings.Lines(text) {
		calls, is := strings.CutPrefix(line, settledWebhook+": ")
		if !is {
			continue
		}
		var u Units
		for _, call := range callUnits.FindAllStringSubmatch(calls, -1) {
			reads, readErr := strconv.ParseFloat(call[1], 64)
			writes, writeErr := strconv.ParseFloat(call[2], 64)
			if readErr != nil || writeErr != nil {
				return Units{}, fmt.Errorf("%q: not units", line)
			}
			u.Reads, u.Records = u.Reads+reads, u.Records+writes
		}
		return u, nil
	}
	return Units{}, fmt.Errorf("no line %q", settledWebhook)
}

// throttle is what a route of the API lets through, and createRoute the one that payments are made by.
type throttle struct{ ThrottlingRateLimit float64 }

const createRoute = "ANY /v1/payments"

// parseTemplate reads the golden template of the stack with its defaults.
func parseTemplate(text []byte) (d Deployed, err error) {
	var template struct {
		Resources map[string]struct {
			Type       string
			Properties struct {
				MemorySize            float64
				Reserved              float64 `json:"ReservedConcurrentExecutions"`
				DefaultRouteSettings  throttle
				RouteSettings         map[string]throttle
				BatchSize             float64
				ParallelizationFactor float64
				Environment           struct{ Variables map[string]any }
				Targets               []struct{ Input string }
			}
		}
	}
	if err := json.Unmarshal(text, &template); err != nil {
		return Deployed{}, err
	}
	d = Deployed{
		MemoryMiB: map[string]float64{}, Reserved: map[string]float64{"relay": relayReserved}, // which the default stack has not
		WarmReads: newTableReads, WarmWrites: newTableWrites, WakeUpsMax: wakeUpsMax,
	}
	targets := 0 // the sweep's and the reconciler's, as many each
	for id, resource := range template.Resources {
		p := resource.Properties
		switch resource.Type {
		case "AWS::Lambda::Function":
			name, _, _ := strings.Cut(id, "Function")
			d.MemoryMiB[strings.ToLower(name)], d.Reserved[strings.ToLower(name)] = p.MemorySize, p.Reserved
			if err := d.readEnvironment(name, p.Environment.Variables); err != nil {
				return Deployed{}, err
			}
		case "AWS::ApiGatewayV2::Stage":
			d.Requests, d.Payments = p.DefaultRouteSettings.ThrottlingRateLimit, p.RouteSettings[createRoute].ThrottlingRateLimit
		case "AWS::Events::Rule":
			for _, target := range p.Targets {
				if strings.Contains(target.Input, `"shards"`) {
					targets++
				}
			}
		case "AWS::Lambda::EventSourceMapping":
			if p.ParallelizationFactor != 0 {
				d.StreamBatch, d.StreamParallel = p.BatchSize, p.ParallelizationFactor
			} else if strings.HasPrefix(id, "DeliveryWakeUps") {
				d.QueueBatch = p.BatchSize
			}
		}
	}
	d.SweepRuns = targets / 2
	if !d.complete() {
		return Deployed{}, fmt.Errorf("a function, mapping, schedule, quota or throttle is missing: %+v", d)
	}
	return d, nil
}

// readEnvironment takes what a function is told of the plan's figures.
func (d *Deployed) readEnvironment(function string, variables map[string]any) (err error) {
	for variable, into := range map[string]*int{"Api OUTBOX_SHARDS": &d.OutboxShards, "Api LEDGER_SHARDS": &d.LedgerShards, "Drift DRIFT_PARTS": &d.DriftParts} {
		of, key, _ := strings.Cut(variable, " ")
		if value, ok := variables[key].(string); ok && of == function {
			if *into, err = strconv.Atoi(value); err != nil {
				return err
			}
		}
	}
	if function != "Api" {
		return nil
	}
	for variable, into := range map[string]*float64{
		"QUOTA_NEW_KEYS_PER_SECOND": &d.NewKeys, "QUOTA_LOOK_UPS_PER_SECOND": &d.LookUps, "QUOTA_ACTIVE_KEYS": &d.ActiveKeys,
	} {
		if value, ok := variables[variable].(string); ok {
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return err
			}
		}
	}
	if value, ok := variables["RETENTION"].(string); ok {
		d.ActiveFor, err = time.ParseDuration(value)
	}
	return err
}

// complete says whether everything was found that a plan needs.
func (d Deployed) complete() bool {
	for _, found := range []float64{
		float64(d.SweepRuns), float64(d.OutboxShards), float64(d.LedgerShards), float64(d.DriftParts), d.StreamBatch, d.QueueBatch,
		d.MemoryMiB["api"], d.MemoryMiB["worker"], d.MemoryMiB["authorizer"], d.MemoryMiB["drift"],
		d.Reserved["api"], d.Reserved["authorizer"], d.Reserved["worker"], d.Requests, d.Payments,
		d.NewKeys, d.LookUps, d.ActiveKeys, float64(d.ActiveFor),
	} {
		if found == 0 {
			return false
		}
	}
	return true
}
