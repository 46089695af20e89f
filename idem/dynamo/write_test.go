package dynamo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
)

// credit is an application's own write.
type credit struct{ account string }

func (credit) IfConditionFails() storage.Failure { return idem.Retry() }

func TestEachKindOfWriteTakesPart(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{Translate: nil})
	table := &tables.rows
	commit := func(writes ...storage.Write) error {
		send, err := store.Prepare(storage.Commit{Record: completed(reserved(t), nil), Now: base, Token: string(owner(t)), Writes: writes})
		must(t, err)
		return send(t.Context())
	}
	must(t, commit(insertRow(tables, "a"), insertRow(tables, "b")))
	must(t, commit(
		dynamo.Update(types.Update{TableName: table, Key: rowKey("a"), UpdateExpression: aws.String("SET n = :two"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":two": number("2")}}),
		dynamo.Delete(types.Delete{TableName: table, Key: rowKey("b")}),
		dynamo.ConditionCheck(types.ConditionCheck{TableName: table, Key: rowKey("c"), ConditionExpression: aws.String("attribute_not_exists(pk)")}, idem.Retry()),
	))
	if n := stored(t, client, tables.rows, "pk", "a")["n"].(*types.AttributeValueMemberN).Value; n != "2" {
		t.Errorf("row a counts %s, want 2", n)
	}
	if stored(t, client, tables.rows, "pk", "b") != nil {
		t.Error("row b is still there")
	}
	err := commit(
		insertRow(tables, "d"),
		dynamo.ConditionCheck(types.ConditionCheck{TableName: table, Key: rowKey("a"), ConditionExpression: aws.String("attribute_not_exists(pk)")}, idem.Retry()),
	)
	var failed *storage.WriteFailedError
	if !errors.As(err, &failed) || len(failed.Indexes) != 1 || failed.Indexes[0] != 1 {
		t.Errorf("got %v, want the failure of write 1", err)
	}
}

func TestAWriteDeclaresItsFailure(t *testing.T) {
	for name, write := range map[string]storage.Write{
		"put": dynamo.Put(types.Put{}, idem.Retry()), "update": dynamo.Update(types.Update{}, idem.Retry()),
		"delete": dynamo.Delete(types.Delete{}, idem.Retry()), "check": dynamo.ConditionCheck(types.ConditionCheck{}, idem.Retry()),
	} {
		if !write.IfConditionFails().Retries() {
			t.Errorf("%s: the declared failure is lost", name)
		}
	}
}

// A condition and what its failure means go together. Without either a write is unconditional.
func TestAConditionAndItsFailureGoTogether(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{})
	condition := aws.String("attribute_not_exists(pk)")
	update := aws.String("SET n = :one")
	one := map[string]types.AttributeValue{":one": number("1")}
	writes := map[string]func(key string, condition *string, failure ...storage.Failure) storage.Write{
		"put": func(key string, condition *string, failure ...storage.Failure) storage.Write {
			return dynamo.Put(types.Put{TableName: &tables.rows, Item: rowKey(key), ConditionExpression: condition}, failure...)
		},
		"update": func(key string, condition *string, failure ...storage.Failure) storage.Write {
			return dynamo.Update(types.Update{TableName: &tables.rows, Key: rowKey(key), UpdateExpression: update, ExpressionAttributeValues: one,
				ConditionExpression: condition}, failure...)
		},
		"delete": func(key string, condition *string, failure ...storage.Failure) storage.Write {
			return dynamo.Delete(types.Delete{TableName: &tables.rows, Key: rowKey(key), ConditionExpression: condition}, failure...)
		},
		"check": func(key string, condition *string, failure ...storage.Failure) storage.Write {
			return dynamo.ConditionCheck(types.ConditionCheck{TableName: &tables.rows, Key: rowKey(key), ConditionExpression: condition}, failure...)
		},
	}
	rejects := idem.Reject(idem.NewProblem(409, "taken", "Taken", "It is taken."))
	for kind, write := range writes {
		for name, row := range map[string]struct {
			write storage.Write
			want  string // "" sends
		}{
			"neither":                        {write(kind+"-neither", nil), ""},
			"both, a retry":                  {write(kind+"-retry", condition, idem.Retry()), ""},
			"both, a rejection":              {write(kind+"-rejection", condition, rejects), ""},
			"a zero failure, no condition":   {write(kind+"-zero", nil, storage.Failure{}), ""},
			"a condition":                    {write(kind, condition), "write 1 has a condition and does not say what its failure means"},
			"a condition and a zero failure": {write(kind, condition, storage.Failure{}), "write 1 has a condition and does not say what its failure means"},
			"a retry":                        {write(kind, nil, idem.Retry()), "write 1 says what the failure of its condition means and has no ConditionExpression"},
			"a rejection, an empty text":     {write(kind, aws.String(""), rejects), "write 1 says what the failure of its condition means and has no ConditionExpression"},
			"two failures":                   {write(kind, condition, rejects, idem.Retry()), "write 1 has 2 failures"},
		} {
			if kind == "check" && row.want == "" && !strings.HasPrefix(name, "both") {
				continue // DynamoDB knows no check without a condition
			}
			send, err := store.Prepare(storage.Commit{Record: completed(reserved(t), nil), Now: base, Token: string(owner(t)), Writes: []storage.Write{
				insertRow(tables, "other"), row.write,
			}})
			switch {
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("%s with %s: got %v, want an error with %q", kind, name, err, row.want)
			case row.want == "":
				must(t, err)
				must(t, send(t.Context()))
			}
		}
	}
	if stored(t, client, tables.rows, "pk", "put-neither") == nil {
		t.Error("the unconditional put is missing")
	}
}

// In a settlement no condition may fail, so none needs a meaning.
func TestASettlementsConditionNeedsNoFailure(t *testing.T) {
	store, _, tables := onDynoxide(t, dynamo.Config{})
	_, err := store.PrepareSettle(storage.Settlement{
		Message: storage.MessageEnd{ID: storage.MessageID("op_1.1"), State: storage.MessageDead, SweepAt: base}, Fence: storage.MessageFence{Open: true}, Token: string(owner(t)),
		Writes: []storage.Write{dynamo.Put(types.Put{TableName: &tables.rows, Item: rowKey("a"), ConditionExpression: aws.String("attribute_not_exists(pk)")})},
	})
	must(t, err)
}

// What a handler wrote can be looked at without DynamoDB.
func TestItemIsWhatAWriteWasMadeOf(t *testing.T) {
	table := aws.String("rows")
	for name, row := range map[string]struct {
		write storage.Write
		table func(types.TransactWriteItem) *string
	}{
		"put":    {dynamo.Put(types.Put{TableName: table}), func(i types.TransactWriteItem) *string { return i.Put.TableName }},
		"update": {dynamo.Update(types.Update{TableName: table}), func(i types.TransactWriteItem) *string { return i.Update.TableName }},
		"delete": {dynamo.Delete(types.Delete{TableName: table}), func(i types.TransactWriteItem) *string { return i.Delete.TableName }},
		"check":  {dynamo.ConditionCheck(types.ConditionCheck{TableName: table}), func(i types.TransactWriteItem) *string { return i.ConditionCheck.TableName }},
	} {
		if item, ok := dynamo.Item(row.write); !ok || row.table(item) != table {
			t.Errorf("%s: %+v, %v", name, item, ok)
		}
	}
	for name, other := range map[string]storage.Write{"an application's own": credit{"acct_1"}, "none": nil} {
		if item, ok := dynamo.Item(other); ok {
			t.Errorf("%s: %+v", name, item)
		}
	}
}

func TestATranslatorTakesTheApplicationsOwnWrites(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]))
	tables := createTables(t, client)
	store := newStore(t, client, tables, dynamo.Config{Translate: func(w storage.Write) (types.TransactWriteItem, error) {
		c, ok := w.(credit)
		if !ok || c.account == "" {
			return types.TransactWriteItem{}, fmt.Errorf("no item for %v", w)
		}
		return types.TransactWriteItem{Put: &types.Put{TableName: &tables.rows, Item: rowKey(c.account)}}, nil
	}})
	commit := storage.Commit{Record: completed(reserved(t), nil), Now: base, Token: string(owner(t)), Writes: []storage.Write{
		credit{"acct_1"}, insertRow(tables, "native"),
	}}
	send, err := store.Prepare(commit)
	must(t, err)
	must(t, send(t.Context()))
	for _, key := range []string{"acct_1", "native"} {
		if stored(t, client, tables.rows, "pk", key) == nil {
			t.Errorf("row %s is missing", key)
		}
	}
	commit.Writes = []storage.Write{credit{}}
	if _, err := store.Prepare(commit); err == nil || !strings.Contains(err.Error(), "write 0: translate a dynamo_test.credit") {
		t.Errorf("got %v, want the translator's error with the write's position", err)
	}
}

// What can't be a part of the transaction is refused before anything is sent.
func TestWritesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	tables := createTables(t, client)
	store := newStore(t, client, tables, dynamo.Config{})
	put := func(table string, item map[string]types.AttributeValue) storage.Write {
		return dynamo.Put(types.Put{TableName: &table, Item: item})
	}
	del := func(table, key string) storage.Write {
		return dynamo.Delete(types.Delete{TableName: &table, Key: rowKey(key)})
	}
	big := func(key string, size int) storage.Write {
		row := rowKey(key)
		row["blob"] = &types.AttributeValueMemberB{Value: make([]byte, size)}
		return put(tables.rows, row)
	}
	var many, large []storage.Write
	for i := range 100 {
		many = append(many, put(tables.rows, rowKey(fmt.Sprint("many", i))))
	}
	for i := range 11 {
		large = append(large, big(fmt.Sprint("large", i), 390<<10))
	}
	arn := "arn:aws:dynamodb:us-east-1:000000000000:table/"
	for name, row := range map[string]struct {
		writes []storage.Write
		want   string
	}{
		"nil":                            {[]storage.Write{nil}, "write 0: is nil"},
		"a type that nobody translates":  {[]storage.Write{credit{"acct_1"}}, "write 0: a dynamo_test.credit is none of"},
		"no table":                       {[]storage.Write{put("", rowKey("a"))}, "write 0: names no table"},
		"no item":                        {[]storage.Write{put(tables.rows, nil)}, "write 0: has no item or key"},
		"the idempotency table":          {[]storage.Write{put(tables.rows, rowKey("a")), put(tables.Idempotency, rowKey("a"))}, "write 1: is on the table " + tables.Idempotency},
		"the outbox table":               {[]storage.Write{del(tables.Outbox, "a")}, "write 0: is on the table " + tables.Outbox},
		"the idempotency table's ARN":    {[]storage.Write{del(arn+tables.Idempotency, "a")}, "write 0: is on the table " + tables.Idempotency},
		"101 items":                      {many, "a transaction of 101 items"},
		"more than 4 MB":                 {large, "a transaction of 12 items and 439"},
		"an item of more than 400 KB":    {[]storage.Write{big("big", 400<<10)}, "write 0 has 409"},
		"two deletes of one item":        {[]storage.Write{del(tables.rows, "a"), put(tables.rows, rowKey("b")), del(tables.rows, "a")}, "write 0 and write 2 are on the same item"},
		"an ARN and a name for one item": {[]storage.Write{del(tables.rows, "a"), del(arn+tables.rows, "a")}, "write 0 and write 1 are on the same item"},
		"a put and a delete of one item": {[]storage.Write{insertRow(tables, "a"), del(tables.rows, "a")}, "write 0 and write 1 are on the same item"},
		"two equal puts":                 {[]storage.Write{put(tables.rows, rowKey("a")), put(tables.rows, rowKey("a"))}, "write 0 and write 1 are on the same item"},
	} {
		t.Run(name, func(t *testing.T) {
			faults.Inject("TransactWriteItems")
			r := completed(reserved(t), []byte("{}"))
			_, err := store.Prepare(storage.Commit{Record: r, Now: base, Token: string(owner(t)), Writes: row.writes})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want an error with %q", err, row.want)
			}
			if errors.Is(err, storage.ErrResponseTooLarge) {
				t.Errorf("the response is blamed: %v", err)
			}
			if sent := faults.Bodies("TransactWriteItems"); len(sent) != 0 {
				t.Errorf("%d requests were sent", len(sent))
			}
		})
	}
}

// What the SDK itself refuses was never sent, so it is a final error and not a lost reply.
func TestAWriteThatTheSDKRefuses(t *testing.T) {
	store, _, tables := onDynoxide(t, dynamo.Config{})
	send, err := store.Prepare(storage.Commit{Record: completed(reserved(t), nil), Now: base, Token: string(owner(t)), Writes: []storage.Write{
		dynamo.Update(types.Update{TableName: &tables.rows, Key: rowKey("a")}), // without an expression
	}})
	must(t, err)
	if err := send(t.Context()); meaningOf(err) != final {
		t.Errorf("the error means %q: %v", meaningOf(err), err)
	}
}

// What would fit without the response is the response's fault, which the caller answers with a stored 500.
func TestAResponseThatCrowdsATransactionIsTooLarge(t *testing.T) {
	store, _, tables := onDynoxide(t, dynamo.Config{})
	var writes []storage.Write
	for i := range 98 {
		writes = append(writes, insertRow(tables, fmt.Sprint("row", i)))
	}
	r := reserved(t)
	for name, commit := range map[string]storage.Commit{
		"too many items": {Record: completed(r, random(400<<10)), Writes: writes},
		"too many bytes": {Record: completed(r, random(3<<20)), Writes: []storage.Write{
			blob(tables, "a"), blob(tables, "b"), blob(tables, "c"),
		}},
	} {
		commit.Now, commit.Token = base, string(owner(t))
		if _, err := store.Prepare(commit); !errors.Is(err, storage.ErrResponseTooLarge) {
			t.Errorf("%s: got %v, want ErrResponseTooLarge", name, err)
		}
		commit.Record.Response.Body = nil
		if _, err := store.Prepare(commit); err != nil {
			t.Errorf("%s: without the response: %v", name, err)
		}
	}
}

func blob(tables tables, key string) storage.Write {
	row := rowKey(key)
	row["blob"] = &types.AttributeValueMemberB{Value: make([]byte, 390<<10)}
	return dynamo.Put(types.Put{TableName: &tables.rows, Item: row})
}
