package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	importedStream = "arn:aws:dynamodb:eu-central-1:111122223333:table/outbox-r1/stream/2026-11-21T11:30:02.123"
	importedKey    = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
)

// there is everything that a stack may be deployed onto.
func there() map[string]any {
	return map[string]any{
		"idempotency": "records-r1", "outbox": "outbox-r1", "outboxStream": importedStream, "payments": "payments-r1",
		"apiKeys": "keys-of-tenants", "audit": "audit-log", "keys": "data-keys", "kmsKey": importedKey, "backupVault": "vault",
	}
}

// The context that docs/recovery.md shows has every member that a stack may be deployed onto, and no other.
func TestThePageShowsWhatMayBeImported(t *testing.T) {
	page, err := os.ReadFile("../../docs/recovery.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, _ := strings.Cut(rest, "```")
	var shown struct {
		Context struct {
			Import map[string]string `json:"import"`
			Lost   string            `json:"lost"`
		} `json:"context"`
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(shown.Context.Import)), slices.Sorted(maps.Keys(there())); !slices.Equal(got, want) || shown.Context.Lost == "" {
		t.Errorf("the page has %v and lost %q, a stack takes %v", got, shown.Context.Lost, want)
	}
}

// onto is the context of a stack that is deployed onto tables.
func onto(names map[string]any, more map[string]any) map[string]any {
	context := map[string]any{
		"account": "111122223333", "region": "eu-central-1", "alarmTopic": "none", "encryption": "on", "backup": "on",
		"import": names, "lost": "records", "quotaNewKeys": "0", "quotaActiveKeys": 0, "quotaLookUps": 0, "quotaWaits": 0,
	}
	maps.Copy(context, more)
	return context
}

// A stack that is deployed onto what is there makes no table, key or vault, and names what is there everywhere.
func TestWhatIsImportedIsUsedAndNotMade(t *testing.T) {
	s := synthesizeContext(t, onto(there(), nil), buildFolder(t))
	for _, kind := range []string{"AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::Backup::BackupVault"} {
		s.counts(t, kind, 0)
	}
	s.counts(t, "AWS::DynamoDB::GlobalTable", 1) // the drift job's progress, which is made anew
	for name, want := range map[string]string{
		"IDEMPOTENCY_TABLE": "records-r1", "OUTBOX_TABLE": "outbox-r1", "PAYMENTS_TABLE": "payments-r1", "KEYS_TABLE": "data-keys",
		"KMS_KEY_ID": importedKey, "LOST_RECORDS": "true",
	} {
		for _, function := range []string{"Api", "Worker", "Sweep", "Reconcile"} {
			variables := s.only(t, "AWS::Lambda::Function", function).Properties["Environment"].(map[string]any)["Variables"].(map[string]any)
			if got := plain(variables[name]); got != want {
				t.Errorf("%s of %s is %q, want %q", name, function, got, want)
			}
		}
	}
	s.has(t, "AWS::Lambda::EventSourceMapping", map[string]any{"EventSourceArn": importedStream})
	granted := fmt.Sprint(s.only(t, "AWS::IAM::Role", "SweepRole").Properties["Policies"])
	for _, want := range []string{"table/records-r1", "table/outbox-r1/index/queue", "table/payments-r1", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", importedKey} {
		if !strings.Contains(granted, want) {
			t.Errorf("the sweep is granted nothing about %s: %s", want, granted)
		}
	}
	for output, want := range map[string]string{"AuditTable": "audit-log", "ApiKeysTable": "keys-of-tenants", "IdempotencyTable": "records-r1", "BackupVaultName": "vault"} {
		if got := plain(s.Outputs[output].Value); got != want {
			t.Errorf("output %s is %q, want %q", output, got, want)
		}
	}
}

// A function whose environment names an imported table has another description than without the import: otherwise the table's own name
// would make a new version that is equal to the last, which Lambda refuses.
func TestAnImportedNameMakesAnotherFunction(t *testing.T) {
	without := there()
	delete(without, "apiKeys")
	describedBy := map[string]string{}
	for name, names := range map[string]map[string]any{"with": there(), "without": without} {
		s := synthesizeContext(t, onto(names, nil), buildFolder(t))
		for _, function := range []string{"Api", "Authorizer", "Worker", "Sweep", "Reconcile"} {
			text := plain(s.only(t, "AWS::Lambda::Function", function).Properties["Description"])
			if len(text) > 256 { // Lambda's limit
				t.Errorf("the description of %s has %d characters", function, len(text))
			}
			if describedBy[function] == text {
				t.Errorf("%s is described alike with and without the import: %s", function, text)
			}
			describedBy[function] = text
		}
		if strings.Contains(describedBy["Authorizer"], "apiKeys") != (name == "with") {
			t.Errorf("%s: %s", name, describedBy["Authorizer"])
		}
	}
}

// The command line gives the same map as JSON; keys that are left out are made anew.
func TestWhatIsNotImportedIsMade(t *testing.T) {
	text := `{"idempotency": "records-r1", "outbox": "outbox-r1", "outboxStream": "` + importedStream + `", "payments": "payments-r1", "keys": "new"}`
	s := synthesizeContext(t, onto(nil, map[string]any{"import": text, "lost": "nothing"}), buildFolder(t))
	s.counts(t, "AWS::DynamoDB::GlobalTable", 4) // API keys, audit log, data keys, the drift job's progress
	s.counts(t, "AWS::KMS::Key", 1)
	s.counts(t, "AWS::Backup::BackupVault", 1)
	variables := s.only(t, "AWS::Lambda::Function", "Api").Properties["Environment"].(map[string]any)["Variables"].(map[string]any)
	if variables["LOST_RECORDS"] != nil || plain(variables["IDEMPOTENCY_TABLE"]) != "records-r1" {
		t.Errorf("variables %v", variables)
	}
}

// In a stopped stack nothing runs that executes, delivers or decides: what is under way ends, and nothing else begins.
func TestAStoppedStackRunsNothing(t *testing.T) {
	for _, context := range []map[string]any{
		{"account": "111122223333", "region": "eu-central-1", "alarmTopic": "none", "stopped": "true", "webhookSecret": secretARN, "outbox": "sqs"},
		{"local": true, "arch": "amd64", "alarmTopic": "none", "stopped": true, "localWebhookSecret": localSecret},
	} {
		s := synthesizeContext(t, context, buildFolder(t))
		for name, r := range s.Resources {
			switch r.Type {
			case "AWS::Lambda::Function":
				runs := slices.Contains([]string{"AuthorizerFunction", "DriftFunction"}, bare(name))
				if stopped := r.Properties["ReservedConcurrentExecutions"] == float64(0); stopped == runs {
					t.Errorf("%s has %v executions reserved", name, r.Properties["ReservedConcurrentExecutions"])
				}
			case "AWS::Lambda::EventSourceMapping":
				if stopped := r.Properties["Enabled"] == false; stopped == strings.HasPrefix(name, "DriftSchedule") {
					t.Errorf("%s is enabled: %v", name, r.Properties["Enabled"])
				}
			case "AWS::Events::Rule":
				if stopped := r.Properties["State"] == "DISABLED"; stopped == strings.HasPrefix(name, "DriftSchedule") {
					t.Errorf("%s is %v", name, r.Properties["State"])
				}
			}
		}
	}
}

func TestTablesOfALocalStackMayStay(t *testing.T) {
	s := synthesizeContext(t, map[string]any{"local": true, "arch": "amd64", "alarmTopic": "none", "retainTables": "true"}, buildFolder(t))
	for name, r := range s.Resources {
		if r.Type == "AWS::DynamoDB::GlobalTable" && r.DeletionPolicy != "Retain" {
			t.Errorf("%s: %s", name, r.DeletionPolicy)
		}
	}
}

func TestReadRefusesAnImport(t *testing.T) {
	without := func(names ...string) map[string]any {
		all := there()
		for _, name := range names {
			delete(all, name)
		}
		return all
	}
	with := func(name, value string) map[string]any {
		all := there()
		all[name] = value
		return all
	}
	for name, c := range map[string]struct {
		names, more map[string]any
		want        string
	}{
		"a name that is none":              {with("payments", "p"), nil, `context import.payments="p" is refused; allowed: the name of a table`},
		"an unknown member":                {with("payment", "payments"), nil, `import.payment="payments" is refused`},
		"a part of the money":              {without("outbox", "outboxStream"), nil, "together, or none of them"},
		"no stream":                        {without("outboxStream"), nil, "together, or none of them"},
		"another table's stream":           {with("outbox", "outbox-r2"), nil, `the stream of import.outbox = "outbox-r2" in eu-central-1, account 111122223333`},
		"another Region's stream":          {there(), map[string]any{"region": "eu-west-1"}, "in eu-west-1, account 111122223333"},
		"one table twice":                  {with("payments", "records-r1"), nil, "another table than import.idempotency"},
		"nothing said about what's lost":   {there(), map[string]any{"lost": nil}, `context lost="" is refused; allowed: nothing where`},
		"another word about it":            {there(), map[string]any{"lost": "some"}, "allowed: nothing, records"},
		"no keys of what is encrypted":     {without("keys", "kmsKey"), nil, "the table of the keys that the imported tables are encrypted with"},
		"keys without their KMS key":       {without("kmsKey"), nil, "the id of the KMS key that wraps what is in import.keys"},
		"keys without encryption":          {there(), map[string]any{"encryption": "off"}, "nothing with encryption=off"},
		"text that is no map":              {nil, map[string]any{"import": "records-r1"}, "allowed: a map of names"},
		"an empty map":                     {map[string]any{}, nil, "allowed: a map of names"},
		"backups copied to where they are": {there(), map[string]any{"backupCopy": "arn:aws:backup:eu-central-1:111122223333:backup-vault:copies"}, "a vault in another Region"},
		"retained tables in production":    {there(), map[string]any{"retainTables": "true"}, `context retainTables="true" is refused`},
	} {
		context := onto(c.names, c.more)
		context["providerUrl"] = "https://provider.example"
		if _, err := read(context, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	context := onto(there(), nil)
	context["providerUrl"] = "https://provider.example"
	if _, err := read(context, nil); err != nil {
		t.Errorf("the whole of it: %v", err)
	}
}
