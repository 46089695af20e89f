package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The tables of a rehearsal are copied while nobody writes, so that no transaction is torn. A restore on AWS may bring back a part of
// the last ones. So a rehearsal tears transfers itself: of each one another item is as it was before.

// The accounts that transfers go from and to.
const (
	payer    = "acct_1"
	receiver = "acct_2"
)

// transferred is a transfer that was answered before the moment that data is restored to.
type transferred struct {
	story
	id string
	// undo takes back one of the transaction's items in restored tables.
	undo func(*transferred, context.Context, *dynamodb.Client, string) error
}

// transfers makes the transfers that will be torn.
func (r *run) transfers(ctx context.Context) error {
	for name, undo := range map[string]func(*transferred, context.Context, *dynamodb.Client, string) error{
		"row": (*transferred).withoutRow, "debit": (*transferred).withoutDebit, "credit": (*transferred).withoutCredit,
	} {
		t := &transferred{undo: undo}
		t.amount, t.key, t.path, t.firstSent = r.amount(), "transfer_"+r.id+"_"+name, "/v1/transfers", r.now()
		t.body = fmt.Sprintf(`{"from":%q,"to":%q,"amount":%d,"currency":"EUR"}`, payer, receiver, t.amount)
		for range retriesMax {
			if t.take(r.send(ctx, &t.story)); t.final() {
				break
			}
		}
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(t.answer.body), &made); err != nil || t.status != http.StatusCreated {
			return fmt.Errorf("transfer %s is answered %d %s", name, t.status, t.answer.body)
		}
		t.id = made.ID
		r.torn = append(r.torn, t)
	}
	return nil
}

func (t *transferred) withoutRow(ctx context.Context, client *dynamodb.Client, table string) error {
	_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: item{attributeKey: textValue("transfer#tenant-a/" + t.id)}})
	return err
}

func (t *transferred) withoutDebit(ctx context.Context, client *dynamodb.Client, table string) error {
	return unmoved(ctx, client, table, payer, t.amount)
}

func (t *transferred) withoutCredit(ctx context.Context, client *dynamodb.Client, table string) error {
	return unmoved(ctx, client, table, receiver, -t.amount)
}

// unmoved makes an account what it was before a movement: its balance and its totals are in one item.
func unmoved(ctx context.Context, client *dynamodb.Client, table, account string, back int64) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: accountKey(account), UpdateExpression: aws.String("SET bal = bal + :back ADD mvs :back, mvc :one"),
		ExpressionAttributeValues: item{":back": &types.AttributeValueMemberN{Value: strconv.FormatInt(back, 10)}, ":one": &types.AttributeValueMemberN{Value: "-1"}},
	})
	return err
}

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func accountKey(account string) item {
	return item{attributeKey: textValue("account#tenant-a/" + account)}
}

// compareAccounts is the runbook's "Compare the balances", on restored tables whose last transfers are torn: the comparison finds them,
// corrects them, and finds nothing after that.
func (r *run) compareAccounts(ctx context.Context, tables map[string]string) error {
	table := tables["PAYMENTS_TABLE"]
	before, err := r.balances(ctx, table)
	if err != nil {
		return err
	}
	for _, t := range r.torn {
		if err := t.undo(t, ctx, r.tables, table); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		code                int
		arguments           []string
		transfers, accounts int
	}{
		{1, nil, 1, 2},
		{0, []string{"--correct", "--write"}, 1, 2},
		{0, []string{"--correct", "--write"}, 0, 0},
	} {
		arguments := append([]string{"--output", "json", "--within", "5m", "account", "compare", "--reason", reason}, step.arguments...)
		out, errs, code := r.idemctl(ctx, tables, arguments...)
		var found struct {
			Transfers []any
			Accounts  []struct{ Lacks int64 }
		}
		err := json.Unmarshal([]byte(out), &found)
		differ := 0
		for _, a := range found.Accounts { // others are listed because nothing is folded into them
			if a.Lacks != 0 {
				differ++
			}
		}
		if err != nil || code != step.code || len(found.Transfers) != step.transfers || differ != step.accounts {
			return fmt.Errorf("idemctl account compare exits with %d, want %d, %d transfers and %d accounts that differ: %s%s", code, step.code, step.transfers, step.accounts, out, errs)
		}
	}
	after, err := r.balances(ctx, table)
	if err == nil && after != before {
		err = fmt.Errorf("balances are %v after the comparison, and were %v before the transfers were torn", after, before)
	}
	return err
}

// balances are those of the payer and the receiver.
func (r *run) balances(ctx context.Context, table string) (both [2]string, err error) {
	for i, account := range []string{payer, receiver} {
		out, err := r.tables.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: accountKey(account), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return both, err
		}
		both[i] = text(out.Item, "bal")
	}
	return both, nil
}

// transfersAnswerTheSame demands that the clients of torn transfers are told what they were told, and that no money moves for that.
func (r *run) transfersAnswerTheSame(ctx context.Context) error {
	for _, t := range r.torn {
		got := r.send(ctx, &t.story)
		for range retriesMax {
			if !got.passing() {
				break
			}
			got = r.send(ctx, &t.story)
		}
		if wrong := t.differs(got); wrong != "" {
			return fmt.Errorf("%s: %s", t.key, wrong)
		}
	}
	return nil
}
