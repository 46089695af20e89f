package hourly

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/table"
)

// Attributes of the table, beside its key.
const (
	attrRevision = "rv"
	attrWrite    = "wr" // random, so that one's own write is known when its reply was lost
	attrCursor   = "cu" // epoch ms, as all times but the TTL
	attrLease    = "le"
	attrTries    = "tr"
	attrDone     = "dn"
	attrReport   = "rp"
	attrParts    = "pt"
	attrSent     = "se"
	attrHour     = "hr"
)

// keptFor is how long a row stays after its pass was due.
const keptFor = 30 * 24 * time.Hour

// beginKey is the row that says since when hours are planned.
const beginKey = "begin"

// reportBytesMax keeps a row well below DynamoDB's 400 KB.
const reportBytesMax = 256 << 10

type item = map[string]types.AttributeValue

// errLost is returned where another write came first.
var errLost = errors.New("hourly: another run has changed the row")

// rows keep what is done.
type rows struct {
	client *dynamodb.Client
	table  string
}

func pieceKey(p Piece) string { return "piece/" + p.String() }
func passKey(p Pass) string   { return "pass/" + p.String() }

// piece reads a state, strongly; that of a piece without a row is [begun].
func (r rows) piece(ctx context.Context, p Piece) (state, error) {
	out, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &r.table, Key: item{table.DriftKey: str(pieceKey(p))}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return state{}, fmt.Errorf("hourly: read %v: %w", p, err)
	}
	return decodeState(p, out.Item)
}

// swapPiece replaces a state by the next, or returns errLost.
func (r rows) swapPiece(ctx context.Context, p Piece, was, next state) (state, error) {
	next.revision = was.revision + 1
	report, err := encodeReport(&next.report)
	if err != nil {
		return was, err
	}
	it := item{
		table.DriftKey: str(pieceKey(p)), attrCursor: num(next.cursor.UnixMilli()), attrTries: num(int64(next.tries)), attrReport: report,
		table.DriftGone: gone(p.Pass),
	}
	setTime(it, attrLease, next.leaseUntil)
	setTime(it, attrDone, next.doneAt)
	return next, r.swap(ctx, it, was.revision)
}

// swap writes a whole row over the one of the revision, or where there is none.
func (r rows) swap(ctx context.Context, it item, revision int64) error {
	own := rand.Text()
	it[attrRevision], it[attrWrite] = num(revision+1), str(own)
	put := &dynamodb.PutItemInput{
		TableName: &r.table, Item: it, ConditionExpression: aws.String("attribute_not_exists(" + table.DriftKey + ")"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if revision > 0 {
		put.ConditionExpression = aws.String(attrRevision + " = :was")
		put.ExpressionAttributeValues = item{":was": num(revision)}
	}
	_, err := r.client.PutItem(ctx, put)
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed) && text(failed.Item, attrWrite) == own: // the client sent it twice, and the first was written
		return nil
	case errors.As(err, &failed):
		return errLost
	case err != nil:
		return fmt.Errorf("hourly: write %s: %w", text(it, table.DriftKey), err)
	}
	return nil
}

// progress is a pass as its row shows it.
type progress struct {
	Pass
	revision int64
	parts    int
	sentAt   time.Time
	doneAt   time.Time
	report   drift.Report
}

func (r rows) swapPass(ctx context.Context, was, next progress) error {
	it := item{
		table.DriftKey: str(passKey(next.Pass)), attrHour: str(next.Hour.Format(time.RFC3339)), attrParts: num(int64(next.parts)), table.DriftGone: gone(next.Pass),
	}
	setTime(it, attrSent, next.sentAt)
	if setTime(it, attrDone, next.doneAt); !next.doneAt.IsZero() {
		report, err := encodeReport(&next.report)
		if err != nil {
			return err
		}
		it[attrReport] = report
	}
	return r.swap(ctx, it, was.revision)
}

// begin is the first hour that is planned: that of now, where there was none.
func (r rows) begin(ctx context.Context, now time.Time) (time.Time, error) {
	out, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &r.table, Key: item{table.DriftKey: str(beginKey)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("hourly: read %s: %w", beginKey, err)
	}
	if out.Item == nil {
		at := now.UTC().Truncate(time.Hour)
		err := r.swap(ctx, item{table.DriftKey: str(beginKey), attrHour: str(at.Format(time.RFC3339))}, 0)
		if errors.Is(err, errLost) { // another one's; its next run plans
			return now, nil
		}
		return at, err
	}
	at, err := time.Parse(time.RFC3339, text(out.Item, attrHour))
	if err != nil {
		return at, fmt.Errorf("hourly: malformed row %s: %w", beginKey, err)
	}
	return at, nil
}

const (
	batchMax = 100 // DynamoDB's
	triesMax = 8
	pauseMin = 50 * time.Millisecond
)

// many reads rows strongly; those that are not there are left out.
func (r rows) many(ctx context.Context, keys []string, pause func(context.Context, time.Duration) error) (map[string]item, error) {
	found := map[string]item{}
	for len(keys) > 0 {
		n := min(len(keys), batchMax)
		left := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
		for _, key := range keys[:n] {
			left.Keys = append(left.Keys, item{table.DriftKey: str(key)})
		}
		keys = keys[n:]
		for try := 0; len(left.Keys) > 0; try++ {
			if try == triesMax {
				return nil, fmt.Errorf("hourly: read %s: %d rows were not served in %d tries", r.table, len(left.Keys), triesMax)
			}
			if try > 0 {
				if err := pause(ctx, pauseMin<<try); err != nil {
					return nil, err
				}
			}
			out, err := r.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{r.table: left}})
			if err != nil {
				return nil, fmt.Errorf("hourly: read %s: %w", r.table, err)
			}
			for _, it := range out.Responses[r.table] {
				found[text(it, table.DriftKey)] = it
			}
			left = out.UnprocessedKeys[r.table]
		}
	}
	return found, nil
}

// encodeReport halves the lists of a report until it fits into a row. What is left out is counted, and was logged.
func encodeReport(report *drift.Report) (types.AttributeValue, error) {
	for {
		encoded, err := json.Marshal(report)
		if err != nil {
			return nil, err
		}
		if len(encoded) <= reportBytesMax || len(report.Drifts)+len(report.Parked) == 0 {
			return str(string(encoded)), nil
		}
		report.Drifts, report.Parked = report.Drifts[:len(report.Drifts)/2], report.Parked[:len(report.Parked)/2]
	}
}

func decodeState(p Piece, it item) (state, error) {
	s := begun(p)
	if it == nil {
		return s, nil
	}
	d := decoder{item: it}
	s.revision, s.tries = d.number(attrRevision), int(d.numberOrZero(attrTries))
	s.cursor, s.leaseUntil, s.doneAt = time.UnixMilli(d.number(attrCursor)).UTC(), d.time(attrLease), d.time(attrDone)
	d.report(&s.report)
	if w := p.Window(); s.cursor.Before(w.From) || s.cursor.After(w.To) || s.revision < 1 {
		d.fail("cursor or revision")
	}
	return s, d.err
}

func decodePass(p Pass, it item) (progress, error) {
	d := decoder{item: it}
	g := progress{
		Pass: p, revision: d.number(attrRevision), parts: int(d.number(attrParts)), sentAt: d.time(attrSent), doneAt: d.time(attrDone),
	}
	if g.parts < 1 || g.parts > PartsMax || g.revision < 1 {
		d.fail(attrParts)
	}
	return g, d.err
}

// decoder reads attributes, and keeps the first error.
type decoder struct {
	item item
	err  error
}

func (d *decoder) fail(name string) {
	if d.err == nil {
		d.err = fmt.Errorf("hourly: malformed row %q: %s", text(d.item, table.DriftKey), name)
	}
}

func (d *decoder) number(name string) int64 {
	n, ok := d.item[name].(*types.AttributeValueMemberN)
	if !ok {
		d.fail(name)
		return 0
	}
	value, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		d.fail(name)
	}
	return value
}

func (d *decoder) numberOrZero(name string) int64 {
	if d.item[name] == nil {
		return 0
	}
	return d.number(name)
}

// time is zero where there is none.
func (d *decoder) time(name string) time.Time {
	if ms := d.numberOrZero(name); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

func (d *decoder) report(into *drift.Report) {
	*into = drift.Report{}
	if err := json.Unmarshal([]byte(text(d.item, attrReport)), into); err != nil {
		d.fail(attrReport)
	}
}

func setTime(it item, name string, at time.Time) {
	if !at.IsZero() {
		it[name] = num(at.UnixMilli())
	}
}

func gone(p Pass) types.AttributeValue { return num(p.dueAt(0).Add(keptFor).Unix()) }

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// text is "" where there is no string.
func text(it item, name string) string {
	if s, ok := it[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
