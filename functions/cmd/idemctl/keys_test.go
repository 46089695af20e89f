package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// encrypted is a desk whose stack encrypts, and has a settled payment.
func encrypted(t *testing.T) (*desk, *tablekeys.Keys) {
	t.Helper()
	var keys *tablekeys.Keys
	d := newDesk(t, func(s *lambdatest.Stage) { keys = s.Seal(t) })
	d.deliver(d.pay("k", "card_ok").Message(1))
	return d, keys
}

func kmsIn(t *testing.T, region string) *kms.Client {
	t.Helper()
	return kms.New(kms.Options{
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_KMS")), Region: region, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

// otherRegion names a new table of keys and a KMS key to the commands that follow, as another stack's environment does.
func (d *desk) otherRegion(kmsKey string) {
	d.Helper()
	table := d.Idempotency + "-keys-there"
	d.ok(dynamotest.CreateTable(d.Context(), d.Client, table, schema.Keys()))
	d.Setenv("KEYS_TABLE", table)
	d.Setenv("KMS_KEY_ID", kmsKey)
}

// Without the keys of the other Region's stack nothing opens, and the command says of whom. With the keys, wrapped under the KMS key there,
// everything does. The file has no key that is not wrapped, and there is no file before --write.
func TestKeysGoToAnotherRegion(t *testing.T) {
	d, keys := encrypted(t)
	if got := answered[awsctl.KeysAnswer](d, "keys", "check"); got.Records == 0 || got.Messages == 0 || len(got.Unreadable) > 0 {
		t.Fatalf("here: %+v", got)
	}
	other, err := kmsIn(t, "us-east-1").CreateKey(t.Context(), &kms.CreateKeyInput{})
	d.ok(err)
	id := aws.ToString(other.KeyMetadata.KeyId)
	file := filepath.Join(t.TempDir(), "keys.json")
	export := []string{"keys", "export", file, "--under", aws.ToString(other.KeyMetadata.Arn), "--reason", "ticket 17"}
	if out, _ := d.exits(idemctl.ExitOK, export...); !strings.Contains(out, "dry run: would write the keys of 1 tenants, wrapped under "+id) {
		t.Error(out)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("a dry run wrote the file")
	}
	d.exits(idemctl.ExitOK, append(export, "--write")...)
	d.exits(idemctl.ExitRefused, append(export, "--write")...) // it is there
	text, err := os.ReadFile(file)
	d.ok(err)
	info, err := os.Stat(file)
	d.ok(err)
	secret, err := keys.Current(t.Context(), lambdatest.Tenant)
	d.ok(err)
	plain := base64.StdEncoding.EncodeToString(secret.Secret[:])
	if info.Mode().Perm() != 0o600 || bytes.Contains(text, secret.Secret[:]) || bytes.Contains(text, []byte(plain)) || !bytes.Contains(text, []byte(lambdatest.Tenant)) {
		t.Errorf("%v %s", info.Mode(), text)
	}

	imports := []string{"keys", "import", file, "--reason", "ticket 17"}
	if _, errs := d.exits(idemctl.ExitRefused, imports...); !strings.Contains(errs, "--under") { // this stack has the other KMS key
		t.Error(errs)
	}
	d.otherRegion(id)
	out, _ := d.exits(idemctl.ExitRefused, "keys", "check")
	if !strings.Contains(out, lambdatest.Tenant+"  ") || !strings.Contains(out, "no keys") {
		t.Error(out)
	}
	if out, _ := d.exits(idemctl.ExitOK, imports...); !strings.Contains(out, "dry run: would put the keys of 1 tenants") {
		t.Error(out)
	}
	d.exits(idemctl.ExitRefused, "keys", "check")
	for _, changed := range []string{"of 1 tenants", "of 0 tenants"} {
		if out, _ := d.exits(idemctl.ExitOK, append(imports, "--write")...); !strings.Contains(out, "imported the keys "+changed) {
			t.Error(out)
		}
	}
	if got := answered[awsctl.KeysAnswer](d, "keys", "check"); got.Records == 0 || got.Messages == 0 || len(got.Unreadable) > 0 {
		t.Errorf("there: %+v", got)
	}
	entries := answered[[]operator.Entry](d, "audit")
	for _, action := range []string{"keys export", "keys import"} {
		if !slices.ContainsFunc(entries, func(e operator.Entry) bool {
			return e.Action == action && e.Reason == "ticket 17" && e.Actor == "ada" && strings.Contains(e.Subject, file)
		}) {
			t.Errorf("the audit log has no %s: %+v", action, entries)
		}
	}
}

// A tenant's keys are erased once it is written, and for good: what is stored cannot be opened. What waits for its delivery then is named before.
// Nobody is erased by a name that is misspelt.
func TestKeysOfATenantAreErased(t *testing.T) {
	d, keys := encrypted(t)
	waits := string(d.pay("k2", "card_ok").Message(1))
	erases := []string{"keys", "erase", lambdatest.Tenant, "--reason", "ticket 17"}
	if _, errs := d.exits(idemctl.ExitRefused, "keys", "erase", lambdatest.Tenant+"x", "--reason", "ticket 17", "--write"); !strings.Contains(errs, "has no keys of a tenant") {
		t.Error(errs)
	}
	if out, _ := d.exits(idemctl.ExitOK, erases...); !strings.Contains(out, "dry run: would erase the keys of tenant") || !strings.Contains(out, waits) {
		t.Error(out)
	}
	if _, err := keys.Current(t.Context(), lambdatest.Tenant); err != nil {
		t.Fatalf("a dry run erased them: %v", err)
	}
	for range 2 {
		if out, _ := d.exits(idemctl.ExitOK, append(erases, "--write")...); !strings.Contains(out, "erased the keys of tenant") || !strings.Contains(out, waits) {
			t.Error(out)
		}
	}
	if _, err := keys.Current(t.Context(), lambdatest.Tenant); !errors.Is(err, storage.ErrErased) {
		t.Errorf("%v, want them erased", err)
	}
	if got := answered[awsctl.KeysAnswer](d, "keys", "check"); got.Erased == 0 || len(got.Unreadable) > 0 {
		t.Errorf("%+v", got)
	}
	entries := answered[[]operator.Entry](d, "audit")
	if !slices.ContainsFunc(entries, func(e operator.Entry) bool {
		return e.Action == "keys erase" && e.Actor == "ada" && e.State == operator.EntryDone && strings.Contains(e.Outcome, lambdatest.Tenant) && strings.Contains(e.Outcome, waits)
	}) {
		t.Errorf("the audit log does not say it: %+v", entries)
	}
}

// An erasure does not wait for queues that can't be read.
func TestATenantIsErasedWhateverItsQueuesSay(t *testing.T) {
	d, keys := encrypted(t)
	t.Setenv("OUTBOX_TABLE", "there-is-none")
	out, _ := d.exits(idemctl.ExitOK, "keys", "erase", lambdatest.Tenant, "--reason", "ticket 17", "--write")
	if _, err := keys.Current(t.Context(), lambdatest.Tenant); !errors.Is(err, storage.ErrErased) || !strings.Contains(out, "could not be found out") {
		t.Errorf("%v\n%s", err, out)
	}
}

// docs/operator.md "OutboxDead": a call was open when the tenant's keys were erased, and nobody can open its message any more. A person ends it
// by what the provider has. The application writes nothing of it.
func TestAnErasedTenantsPaymentIsEndedByAPerson(t *testing.T) {
	d, _ := encrypted(t)
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.pay("order-18", "legacy_ok")
	d.deliver(id.Message(1))
	d.exits(idemctl.ExitOK, "keys", "erase", lambdatest.Tenant, "--reason", "ticket 17", "--write")
	s := d.inspect(string(id))
	d.demands(s, "pending unknown pending", "Nobody can open it any more")
	resolve := change("resolve", string(id.Message(1)), s.Messages[0].Seen, "--delivered", s.Application.Provider[id.Message(1)][0].ID)
	if out, _ := d.exits(idemctl.ExitOK, resolve[:len(resolve)-1]...); !strings.Contains(out, "the operation fails") {
		t.Errorf("a dry run says %s", out)
	}
	d.exits(idemctl.ExitOK, resolve...)
	d.demands(d.inspect(string(id)), "failed delivered pending", "nothing: it has ended")
}

// docs/operator.md: of an erasure whose reply was lost the entry says whose keys it was about, so that somebody can look, or repeat it.
func TestAnErasureThatWasNotAnsweredIsOfATenant(t *testing.T) {
	d, _ := encrypted(t)
	endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	d.ok(err)
	table, passed := strconv.Quote(os.Getenv("KEYS_TABLE")), httputil.NewSingleHostReverseProxy(endpoint)
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") && bytes.Contains(body, []byte(table)) {
			http.Error(w, `{"__type":"com.amazon.coral.service#AccessDeniedException"}`, http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		passed.ServeHTTP(w, r)
	}))
	t.Cleanup(failing.Close)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", failing.URL)
	d.exits(idemctl.ExitTrouble, "keys", "erase", lambdatest.Tenant, "--reason", "ticket 17", "--write")
	entries := answered[[]operator.Entry](d, "audit")
	if len(entries) != 1 || entries[0].State != operator.EntryFailed || entries[0].Tenant != lambdatest.Tenant || entries[0].Subject != lambdatest.Tenant {
		t.Errorf("%+v", entries)
	}
}

// A multi-Region key unwraps in the other Region what is wrapped in this one: nothing is wrapped anew.
func TestKeysOfAMultiRegionKeyGoAsTheyAre(t *testing.T) {
	d := newDesk(t, func(s *lambdatest.Stage) {
		s.Seal(t)
		made, err := kmsIn(t, "us-east-1").CreateKey(t.Context(), &kms.CreateKeyInput{MultiRegion: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("KMS_KEY_ID", aws.ToString(made.KeyMetadata.KeyId))
	})
	id := os.Getenv("KMS_KEY_ID")
	d.deliver(d.pay("k", "card_ok").Message(1))
	_, err := kmsIn(t, "us-east-1").ReplicateKey(t.Context(), &kms.ReplicateKeyInput{KeyId: &id, ReplicaRegion: aws.String("eu-west-1")})
	d.ok(err)
	file := filepath.Join(t.TempDir(), "keys.json")
	arn := "arn:aws:kms:eu-west-1:000000000000:key/" + id
	d.exits(idemctl.ExitRefused, "keys", "export", file, "--under", arn, "--reason", "ticket 17", "--write")
	d.exits(idemctl.ExitOK, "keys", "export", file, "--reason", "ticket 17", "--write")
	d.otherRegion(id)
	t.Setenv("AWS_REGION", "eu-west-1")
	d.exits(idemctl.ExitOK, "keys", "import", file, "--reason", "ticket 17", "--write")
	if got := answered[awsctl.KeysAnswer](d, "keys", "check"); got.Records == 0 || len(got.Unreadable) > 0 {
		t.Errorf("there: %+v", got)
	}
}

// Who has begun in the other Region has keys there, which a copy must not replace; and who was erased since the export stays erased.
func TestImportReplacesNoKeysAndBringsNoErasedOnesBack(t *testing.T) {
	d, _ := encrypted(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	d.exits(idemctl.ExitOK, "keys", "export", file, "--reason", "ticket 17", "--write")
	imports := []string{"keys", "import", file, "--reason", "ticket 17", "--write"}
	d.otherRegion(os.Getenv("KMS_KEY_ID"))
	d.exits(idemctl.ExitUsage, append(imports, "--erased", "tenant-x")...)
	d.exits(idemctl.ExitOK, append(imports, "--erased", lambdatest.Tenant)...)
	d.exits(idemctl.ExitOK, imports...) // the erasure stands
	if got := answered[awsctl.KeysAnswer](d, "keys", "check"); got.Erased != got.Records+got.Messages || got.Erased == 0 || len(got.Unreadable) > 0 {
		t.Errorf("erased: %+v", got)
	}

	t.Setenv("KEYS_TABLE", d.Idempotency+"-keys-begun")
	d.ok(dynamotest.CreateTable(t.Context(), d.Client, os.Getenv("KEYS_TABLE"), schema.Keys()))
	wrapper, err := awskms.New(kmsIn(t, "us-east-1"), os.Getenv("KMS_KEY_ID"))
	d.ok(err)
	in, err := tablekeys.New(d.Client, tablekeys.Config{Table: os.Getenv("KEYS_TABLE"), Wrapper: wrapper})
	d.ok(err)
	begun, err := in.Current(t.Context(), lambdatest.Tenant)
	d.ok(err)
	if _, errs := d.exits(idemctl.ExitRefused, imports...); !strings.Contains(errs, "1 tenants have begun here") || !strings.Contains(errs, lambdatest.Tenant) {
		t.Error(errs)
	}
	if now, err := in.Current(t.Context(), lambdatest.Tenant); err != nil || now != begun || begun == (seal.Key{}) {
		t.Errorf("the tenant's key was replaced: %v", err)
	}
}

// What can't be used is said before anything is asked.
func TestKeysRefuseWhatTheyCanNotUse(t *testing.T) {
	d := newDesk(t)
	d.exits(idemctl.ExitUsage, "keys", "check") // nothing is encrypted
	d.exits(idemctl.ExitUsage, "keys", "export", "f", "--under", "alias/idem", "--reason", "ticket 17")
	d.exits(idemctl.ExitUsage, "keys", "export", "f", "--endpoint", "http://127.0.0.1:1", "--reason", "ticket 17")
	d.Seal(t)
	id := os.Getenv("KMS_KEY_ID")
	t.Setenv("KMS_KEY_ID", "alias/idem")
	d.exits(idemctl.ExitUsage, "keys", "export", "f", "--reason", "ticket 17")
	t.Setenv("KMS_KEY_ID", id)
	d.exits(idemctl.ExitRefused, "keys", "export", filepath.Join(t.TempDir(), "none", "f"), "--reason", "ticket 17") // a dry run looks, too
	for _, text := range []string{"", "{}", `{"version":2,"exported_at":"2026-11-24T00:00:00Z","kms_key":"k","tenants":[]}`} {
		file := filepath.Join(t.TempDir(), "keys.json")
		d.ok(os.WriteFile(file, []byte(text), 0o600))
		d.exits(idemctl.ExitUsage, "keys", "import", file, "--reason", "ticket 17")
	}
	d.exits(idemctl.ExitUsage, "keys", "import", filepath.Join(t.TempDir(), "nowhere"), "--reason", "ticket 17")
}
