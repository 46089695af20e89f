//go:build e2e

package e2e

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/internal/token"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// encrypts says that the stack encrypts stored responses and payloads.
func (d deployment) encrypts() bool { return d.table("KEYS") != "" }

// shows says that an item holds the text in clear.
func shows(it item, clear string) bool {
	for _, value := range it {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			if strings.Contains(v.Value, clear) {
				return true
			}
		case *types.AttributeValueMemberB:
			if bytes.Contains(v.Value, []byte(clear)) {
				return true
			}
		}
	}
	return false
}

func TestWhatIsStoredIsEncrypted(t *testing.T) { // semantics.md "What is never cached or trusted"
	t.Parallel()
	r := pay("encrypted", card("encrypted"))
	marker := named("clear-text")
	r.body = paymentBody(1999, card("encrypted"), marker)
	_, first := accept(t, r)
	deployed.tenantA.settle(t, r).is(t, http.StatusCreated)

	kept := map[string]item{"record": record(t, operationPayments, "encrypted"), "message": messageRow(t, first)}
	for what, it := range kept {
		if encrypted := it[schema.Sealed] != nil; encrypted != deployed.encrypts() {
			t.Errorf("the %s is encrypted: %v, want %v: %v", what, encrypted, deployed.encrypts(), it)
		}
	}
	if len(kept["message"]) == 0 || kept["message"][schema.Payload] == nil || kept["record"][schema.ResponseBody] == nil {
		t.Fatalf("there is nothing to look at: %v", kept)
	}
	for _, table := range []string{"IDEMPOTENCY", "OUTBOX", "PAYMENTS"} {
		items, err := scan(t.Context(), table)
		must(t, err)
		found := 0
		for _, it := range items {
			if shows(it, marker) || shows(it, card("encrypted")) {
				found++
			}
		}
		// The payment is the application's own row; a message is never compressed, so that it shows what it holds.
		inClear := table == "PAYMENTS" || table == "OUTBOX" && !deployed.encrypts()
		if deployed.encrypts() && !inClear && found > 0 || inClear && found != 1 {
			t.Errorf("%d items of %s show what the client sent", found, table)
		}
	}
}

// newTenant makes a tenant of this run with an API key, as the stack's seed does. Logs name tenants, so its name is not the
// run's.
func newTenant(t *testing.T) (id string, caller api) {
	t.Helper()
	id = "tenant-" + strings.ToLower(rand.Text()[:8])
	key := token.New(token.Test)
	_, err := deployed.tables.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(deployed.table("API_KEYS")), Item: stack.APIKey(id, key),
	})
	must(t, err)
	return id, newAPI(deployed.variables["API_URL"], key, id)
}

// erase erases the tenant's keys, as an operator does.
func erase(t *testing.T, tenant string) {
	t.Helper()
	wrapper, err := awskms.New(kms.New(kms.Options{
		Region: deployed.variables["AWS_REGION"], BaseEndpoint: aws.String(deployed.variables["AWS_ENDPOINT_URL"]),
		Credentials: credentials.NewStaticCredentialsProvider(deployed.variables["AWS_ACCESS_KEY_ID"], deployed.variables["AWS_SECRET_ACCESS_KEY"], ""),
	}), deployed.variables["KMS_KEY_ID"])
	must(t, err)
	keys, err := tablekeys.New(deployed.tables, tablekeys.Config{Table: deployed.table("KEYS"), Wrapper: wrapper})
	must(t, err)
	must(t, keys.Erase(t.Context(), tenant))
}

// erasedAfter is when no process has an old key any more: each asks again from half of KEY_AGE_MAX on, which is a minute on a local stack,
// and uses what it has until then where it gets no answer.
const erasedAfter = 61 * time.Second

func TestErasedTenantsAnswersAreGone(t *testing.T) { // semantics.md: an erased tenant's answers are 410
	t.Parallel()
	tenant, caller := newTenant(t)
	r := pay("erased", card("erased"))
	first := caller.do(t, r).is(t, http.StatusAccepted)
	final := caller.settle(t, r).is(t, http.StatusCreated)
	same(t, caller.do(t, r).says(t, "replayed"), final)
	beside := pay("beside-erased", card("ok"))
	settledOnce(t, beside)
	status := request{path: first.header.Get("Location")}
	caller.do(t, status).is(t, http.StatusOK)
	if !deployed.encrypts() {
		return // there is no key to erase
	}

	erase(t, tenant)
	<-time.After(erasedAfter)
	fresh := pay("after-erased", card("after_erased"))
	for _, asked := range []request{r, status, fresh} {
		caller.do(t, asked).isProblem(t, http.StatusGone, "idempotency_response_erased")
	}
	if made := chargesOf(t, fresh.key); len(made) != 0 {
		t.Errorf("something was executed for an erased tenant: %+v", made)
	}
	other := r
	other.body = paymentBody(1, card("erased"), r.key)
	caller.do(t, other).says(t, "mismatch").isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused_with_different_payload")
	caller.get(t, payments+"/"+decode[payment](t, final).ID).is(t, http.StatusOK) // the application's own row
	deployed.tenantA.do(t, beside).is(t, http.StatusCreated).says(t, "replayed")
	chargedOnce(t, r, "succeeded")
}
