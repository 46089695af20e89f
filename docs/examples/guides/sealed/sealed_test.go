package sealed

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/seal"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestThePageShowsAnErasure(t *testing.T) {
	page := check.NewPage(t, "encryption.md")
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), wirefault.Patiently)
	tables := check.Get(dynamotest.CreateTables(t.Context(), client, "shop"))(t)
	if err := dynamotest.CreateTable(t.Context(), client, "shop-keys", schema.Keys()); err != nil {
		t.Fatal(err)
	}
	wrapper := check.Get(seal.NewStatic(bytes.Repeat([]byte{7}, seal.KeyBytes)))(t)
	clock := idemtest.NewClock(time.Date(2100, 1, 2, 12, 0, 0, 0, time.UTC))
	cfg := idem.Config{Now: clock.Now, Pause: clock.Pause}

	store, keys, err := NewStore(client, wrapper)
	if err != nil {
		t.Fatal(err)
	}
	service := check.Get(NewService(store, cfg))(t)
	const card = `{"number":"4111111111111111"}`
	check.Send(t, service, "POST", "/cards", "card-17", card).Want(t, 201, "executed")
	check.Send(t, service, "POST", "/cards", "card-17", card).Want(t, 201, "replayed")
	rows := check.Get(client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(tables.Idempotency)}))(t)
	if shown := fmt.Sprintf("%#v", rows.Items); bytes.Contains([]byte(shown), []byte("4111")) || rows.Count == 0 {
		t.Errorf("the number can be read in the table: %s", shown)
	}

	if err := keys.Erase(t.Context(), "customer-1"); err != nil {
		t.Fatal(err)
	}
	// Another process, which holds no key: this one would use its own for up to KeyAgeMax.
	store, _, err = NewStore(client, wrapper)
	if err != nil {
		t.Fatal(err)
	}
	service = check.Get(NewService(store, cfg))(t)
	page.Send("erased", service, "POST", "/cards", "card-17", card).Want(t, 410, "")
	check.Send(t, service, "POST", "/cards", "card-18", card).Want(t, 410, "")
	check.Send(t, service, "POST", "/cards", "card-17", card, "Authorization", "Basic Y3VzdG9tZXItMjpz").Want(t, 201, "executed")
}
