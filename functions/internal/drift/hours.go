package drift

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
)

// row is what the index tells of a row.
type row struct {
	pk string
	at time.Time
}

// hours walk the rows of a window through the index by hour, newest first, the shards of an hour side by side. Of each
// shard one page is held.
type hours struct {
	tables tables
	window Window
	// whole says that pages are as long as DynamoDB makes them: most rows are passed over, and none is read besides.
	whole bool
	// readsMax is after how many reads the walk ends, be it with a few more; 0: it does not end so. reads are those so far.
	readsMax, reads int

	hour   time.Time // the one that the shards are of
	shards []*shard
}

func newHours(t tables, w Window) *hours {
	h := &hours{tables: t, window: w}
	h.enter(w.To.Add(-time.Millisecond).Truncate(time.Hour))
	return h
}

// cut ends the walk at a time within the window: rows made before it are not returned any more.
func (h *hours) cut(at time.Time) { h.window.From = at }

// enter begins with an hour; one before the window has no shards.
func (h *hours) enter(hour time.Time) {
	h.hour, h.shards = hour, nil
	if !hour.Add(time.Hour).After(h.window.From) {
		return
	}
	from, to := hour, hour.Add(time.Hour)
	if h.window.From.After(from) {
		from = h.window.From
	}
	if h.window.To.Before(to) {
		to = h.window.To
	}
	for n := range h.tables.ledgerShards {
		h.shards = append(h.shards, &shard{partition: payments.LedgerPartition(hour, n), from: from, to: to})
	}
}

// next returns up to so many rows, newest first; none at the end of the window.
func (h *hours) next(ctx context.Context, count int) ([]row, error) {
	var rows []row
	for len(rows) < count && h.shards != nil {
		newest, err := h.newest(ctx)
		if err != nil {
			return nil, err
		}
		if newest == nil && h.spent() {
			break
		}
		if newest == nil {
			h.enter(h.hour.Add(-time.Hour))
			continue
		}
		if newest.page[0].at.Before(h.window.From) { // which [hours.cut] has moved
			h.shards = nil
			break
		}
		if r := newest.take(); h.window.Tenant == "" || payments.EntryTenant(r.pk) == h.window.Tenant {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// spent says that no more is read: what has been read is taken.
func (h *hours) spent() bool { return h.readsMax != 0 && h.reads >= h.readsMax }

// newest is the shard whose next row is the newest; nil when the hour is over.
func (h *hours) newest(ctx context.Context) (newest *shard, err error) {
	for _, s := range h.shards {
		if !h.spent() {
			reads, err := s.fill(ctx, h.tables, h.pageMax())
			if h.reads += reads; err != nil {
				return nil, err
			}
		}
		if len(s.page) > 0 && (newest == nil || s.page[0].at.After(newest.page[0].at)) {
			newest = s
		}
	}
	return newest, nil
}

// pageMax bounds a page; nil is DynamoDB's own bound.
func (h *hours) pageMax() *int32 {
	if h.whole {
		return nil
	}
	return aws.Int32(batchMax)
}

// shard is one partition of the index.
type shard struct {
	partition string
	from, to  time.Time
	page      []row
	after     item // where the next page begins; nil before the first
	over      bool
}

func (s *shard) take() row {
	r := s.page[0]
	s.page = s.page[1:]
	return r
}

// fill reads the next page once nothing is left of the last. What the index shows is as old as the window's grace, which
// it has long caught up with; the rows themselves are read strongly. It says how many reads that took.
func (s *shard) fill(ctx context.Context, t tables, pageMax *int32) (reads int, err error) {
	for ; len(s.page) == 0 && !s.over; reads++ {
		out, err := t.cfg.Client.Query(ctx, &dynamodb.QueryInput{
			TableName: &t.cfg.PaymentsTable, IndexName: aws.String(table.Payments().Index.Name),
			KeyConditionExpression:   aws.String("#h = :h AND #at BETWEEN :from AND :to"),
			ExpressionAttributeNames: map[string]string{"#h": table.Hour, "#at": table.CreatedAt},
			ExpressionAttributeValues: item{
				":h": &types.AttributeValueMemberS{Value: s.partition}, ":from": millis(s.from), ":to": millis(s.to.Add(-time.Millisecond)),
			},
			ScanIndexForward: aws.Bool(false), Limit: pageMax, ExclusiveStartKey: s.after,
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			return reads, fmt.Errorf("drift: rows of %s: %w", s.partition, err)
		}
		if out.ConsumedCapacity != nil {
			t.meter.read(*out.ConsumedCapacity)
		}
		for _, it := range out.Items {
			s.page = append(s.page, row{pk: text(it, table.Key), at: time.UnixMilli(number(it, table.CreatedAt)).UTC()})
		}
		s.after, s.over = out.LastEvaluatedKey, len(out.LastEvaluatedKey) == 0
	}
	return reads, nil
}

func millis(at time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(at.UnixMilli(), 10)}
}
