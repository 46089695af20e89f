// Package auditlog keeps the audit log of package operator in a DynamoDB table. The table has the shape that
// schema.Audit describes, and idemconstruct.NewAudit, of the module infra, creates it.
//
// Use it as the Audit of an operator.Config in production, where the log must outlive every process. Tests use
// package memlog. An entry is written before its change is tried, and an entry that was ended is never changed again.
package auditlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
)

// Log is an audit log. It is safe for concurrent use.
type Log struct {
	client *dynamodb.Client
	table  string
}

// SpanMax is the longest span of time that [Log.Entries] reads: a query for each day.
const SpanMax = 366 * 24 * time.Hour

// New returns the log in the table, or an [*idem.ConfigError].
func New(client *dynamodb.Client, table string) (*Log, error) {
	if client == nil || table == "" {
		return nil, &idem.ConfigError{Field: "client, table", Value: table, Rule: "must be given"}
	}
	return &Log{client, table}, nil
}

type item = map[string]types.AttributeValue

// Begin implements operator.AuditLog: 2 write units, and 2 of the index.
func (l *Log) Begin(ctx context.Context, e operator.Entry) error {
	_, err := l.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &l.table, Item: encode(e),
		ConditionExpression:      aws.String("attribute_not_exists(#id)"),
		ExpressionAttributeNames: map[string]string{"#id": schema.EntryID},
	})
	var there *types.ConditionalCheckFailedException
	if errors.As(err, &there) { // the SDK sends again where a reply is lost
		if stored, err := l.entry(ctx, e.ID); err == nil && stored != nil && stored.At.Equal(e.At) && stored.Subject == e.Subject {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("auditlog: begin: %w", err)
	}
	return nil
}

// End implements operator.AuditLog. An entry that was ended stays as it is.
func (l *Log) End(ctx context.Context, e operator.Entry) error {
	_, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: item{schema.EntryID: text(e.ID)},
		UpdateExpression:    aws.String("SET #st = :st, #oc = :oc, #da = :da"),
		ConditionExpression: aws.String("#st = :intended OR (#st = :st AND #da = :da)"),
		ExpressionAttributeNames: map[string]string{
			"#st": schema.State, "#oc": schema.Outcome, "#da": schema.EntryDone,
		},
		ExpressionAttributeValues: item{
			":st": text(string(e.State)), ":oc": text(cut(e.Outcome)), ":da": instant(e.DoneAt), ":intended": text(string(operator.EntryIntended)),
		},
	})
	if err != nil {
		return fmt.Errorf("auditlog: end: %w", err)
	}
	return nil
}

// readAtOnce is how many days, and how many entries, are read at once: one after the other, a year's days take longer than a person waits.
const readAtOnce = 20

// Entries implements operator.AuditLog. The index is stale by moments; each entry is read strongly.
func (l *Log) Entries(ctx context.Context, from, to time.Time, subject string, limit int) ([]operator.Entry, error) {
	if !from.Before(to) || to.Sub(from) > SpanMax || limit < 1 {
		return nil, fmt.Errorf("auditlog: entries from %v to %v, at most %d: a span must be above 0 and at most %v", from, to, limit, SpanMax)
	}
	var all []operator.Entry
	for some := range slices.Chunk(l.days(from, to, subject), readAtOnce) {
		if err := atOnce(some, func(d *day) error { return d.next(ctx) }); err != nil {
			return nil, err
		}
		for _, d := range some { // the newest day first, whichever was answered first
			for d.more {
				var err error
				if all, err = l.read(ctx, all, d.ids, limit); err != nil || len(all) == limit {
					return all, err
				}
				if err = d.next(ctx); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// day is the entries of a day, page by page.
type day struct {
	name, subject string
	pager         *dynamodb.QueryPaginator
	// ids are those of the last page that are about the subject, the newest first; more says that there was such a page.
	ids  []string
	more bool
}

// days are those of a span of time, the newest first.
func (l *Log) days(from, to time.Time, subject string) (all []*day) {
	last := to.Add(-time.Millisecond)
	for at := last.UTC().Truncate(24 * time.Hour); !at.Before(from.UTC().Truncate(24 * time.Hour)); at = at.Add(-24 * time.Hour) {
		name := at.Format(time.DateOnly)
		all = append(all, &day{name: name, subject: subject, pager: dynamodb.NewQueryPaginator(l.client, &dynamodb.QueryInput{
			TableName: &l.table, IndexName: aws.String(schema.Audit().Index.Name), ScanIndexForward: aws.Bool(false),
			KeyConditionExpression:   aws.String("#dy = :dy AND #at BETWEEN :from AND :last"),
			ExpressionAttributeNames: map[string]string{"#dy": schema.EntryDay, "#at": schema.EntryAt},
			ExpressionAttributeValues: item{
				":dy": text(name), ":from": instant(from), ":last": instant(last),
			},
		})})
	}
	return all
}

// next reads the next page, if there is one.
func (d *day) next(ctx context.Context) error {
	d.ids, d.more = nil, d.pager.HasMorePages()
	if !d.more {
		return nil
	}
	page, err := d.pager.NextPage(ctx)
	if err != nil {
		return fmt.Errorf("auditlog: list %s: %w", d.name, err)
	}
	for _, it := range page.Items {
		if strings.HasPrefix(textOf(it, schema.Subject), d.subject) {
			d.ids = append(d.ids, textOf(it, schema.EntryID))
		}
	}
	return nil
}

// read appends the entries of the ids, in their order, until there are as many as the limit.
func (l *Log) read(ctx context.Context, all []operator.Entry, ids []string, limit int) ([]operator.Entry, error) {
	for len(ids) > 0 && len(all) < limit {
		some := make([]*found, min(len(ids), limit-len(all), readAtOnce))
		for i := range some {
			some[i] = &found{id: ids[i]}
		}
		ids = ids[len(some):]
		if err := atOnce(some, func(f *found) (err error) {
			f.entry, err = l.entry(ctx, f.id)
			return err
		}); err != nil {
			return nil, err
		}
		for _, f := range some {
			if f.entry != nil {
				all = append(all, *f.entry)
			}
		}
	}
	return all, nil
}

// found is an entry that the index has; nil where the table does not.
type found struct {
	id    string
	entry *operator.Entry
}

// atOnce does something with each, all at once, and returns the first error in their order.
func atOnce[T any](each []T, do func(T) error) error {
	errs := make([]error, len(each))
	var group sync.WaitGroup
	for i, one := range each {
		group.Go(func() { errs[i] = do(one) })
	}
	group.Wait()
	return cmp.Or(errs...)
}

func (l *Log) entry(ctx context.Context, id string) (*operator.Entry, error) {
	out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.table, Key: item{schema.EntryID: text(id)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fmt.Errorf("auditlog: read: %w", err)
	}
	if out.Item == nil {
		return nil, nil
	}
	e := decode(out.Item)
	return &e, nil
}

func encode(e operator.Entry) item {
	it := item{
		schema.EntryID: text(e.ID), schema.EntryDay: text(e.At.UTC().Format(time.DateOnly)), schema.EntryAt: instant(e.At),
		schema.Actor: text(e.Actor), schema.Action: text(e.Action), schema.Subject: text(e.Subject), schema.Reason: text(e.Reason),
		schema.State: text(string(e.State)),
	}
	for name, value := range map[string]string{schema.Tenant: e.Tenant, schema.Seen: e.Seen} {
		if value != "" {
			it[name] = text(value)
		}
	}
	return it
}

func decode(it item) operator.Entry {
	return operator.Entry{
		ID: textOf(it, schema.EntryID), At: instantOf(it, schema.EntryAt), Actor: textOf(it, schema.Actor), Action: textOf(it, schema.Action),
		Subject: textOf(it, schema.Subject), Tenant: textOf(it, schema.Tenant), Reason: textOf(it, schema.Reason), Seen: textOf(it, schema.Seen),
		State: operator.EntryState(textOf(it, schema.State)), Outcome: textOf(it, schema.Outcome), DoneAt: instantOf(it, schema.EntryDone),
	}
}

// outcomeBytesMax bounds what is kept of an error.
const outcomeBytesMax = 2 << 10

func cut(s string) string {
	if len(s) > outcomeBytesMax {
		return strings.ToValidUTF8(s[:outcomeBytesMax], "")
	}
	return s
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func instant(t time.Time) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.UnixMilli(), 10)}
}

func textOf(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func instantOf(it item, name string) time.Time {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		if ms, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return time.UnixMilli(ms).UTC()
		}
	}
	return time.Time{}
}
