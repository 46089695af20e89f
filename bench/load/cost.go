package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/idem-go/idem-aws/bench/meter"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Cost is what a request of a path consumes, by DynamoDB's documented rules.
type Cost struct {
	Calls      string  `json:"calls"`
	WriteUnits float64 `json:"write_units"`
	ReadUnits  float64 `json:"read_units"`
}

func (c *Cost) columns() string {
	if c == nil {
		return ".\t.\t."
	}
	return fmt.Sprintf("%g\t%g\t%s", c.WriteUnits, c.ReadUnits, c.Calls)
}

// metered is an endpoint whose calls are priced, for one caller.
type metered struct {
	wire   *meter.Wire
	server *httptest.Server
}

// newMetered puts a meter before an endpoint, for the tables of these shapes.
func newMetered(url string, shapes map[string]schema.Table) *metered {
	wire := meter.NewWire(url, &meter.Meter{Raw: dynamotest.Client(url), Shapes: shapes})
	return &metered{wire, httptest.NewServer(wire)}
}

func (m *metered) url() string { return m.server.URL }

func (m *metered) close() {
	m.server.Close()
	m.wire.Close()
}

// costRequests is how many requests must consume the same.
const costRequests = 3

// cost sends requests one at a time. It returns an error where one is not answered as expected, or consumes other than the
// first did.
func (m *metered) cost(ctx context.Context, send sender) (*Cost, error) {
	if _, err := m.wire.Take(); err != nil {
		return nil, err
	}
	var first *Cost
	for n := range costRequests {
		if code := send(ctx, n); code != "" {
			_, err := m.wire.Take()
			return nil, errors.Join(fmt.Errorf("metered: unexpected answer: %s", code), err)
		}
		calls, err := m.wire.Take()
		if err != nil {
			return nil, err
		}
		c := priceOf(calls)
		if first == nil {
			first = &c
		}
		if c != *first {
			return nil, fmt.Errorf("one request consumed %+v, the next one %+v", *first, c)
		}
	}
	return first, nil
}

func priceOf(calls []meter.Call) Cost {
	var names []string
	var sum meter.Units
	for _, c := range calls {
		names = append(names, c.Name)
		sum = sum.Plus(c.Ruled)
	}
	return Cost{strings.Join(names, ", "), sum.Writes(), sum.Reads}
}
