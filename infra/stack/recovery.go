package stack

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// Import names what is there already: left by a stack that was deleted, restored, or copied from another Region. The stack uses it
// and changes nothing of it. What is not named is made anew.
type Import struct {
	// Idempotency, Outbox and Payments are names of tables, and OutboxStream is the ARN of the outbox table's stream. They are
	// imported together, because each transaction writes all of them.
	Idempotency, Outbox, OutboxStream, Payments string
	// APIKeys and Audit are names of tables.
	APIKeys, Audit string
	// Keys is the name of the table of data keys, or newKeys; KMSKey the id of the KMS key that wraps them.
	Keys, KMSKey string
	// BackupVault is the name of a vault of AWS Backup.
	BackupVault string
}

// newKeys as Import.Keys says that nothing in the imported tables is encrypted, and that a new table of keys is made.
const newKeys = "new"

// Lost says what may be missing in the tables that a stack is deployed onto.
type Lost string

// With LostRecords nothing executes until an operator has said up to when records may be missing (idemctl refuse-before).
const (
	LostNothing Lost = "nothing"
	LostRecords Lost = "records"
)

var (
	tableForm    = form{regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`), "the name of a table"}
	streamForm   = form{regexp.MustCompile(`^arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[A-Za-z0-9_.-]{3,255}/stream/[0-9TZ:.-]+$`), "the ARN of the outbox table's stream"}
	kmsForm      = form{regexp.MustCompile(`^(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`), "the id of a KMS key in the stack's account and Region"}
	vaultARNForm = form{regexp.MustCompile(`^(arn:aws[a-z-]*:backup:[a-z0-9-]+:[0-9]{12}:backup-vault:[A-Za-z0-9_-]{2,50})?$`), "the ARN of a vault of AWS Backup"}
	vaultForm    = form{regexp.MustCompile(`^[A-Za-z0-9_-]{2,50}$`), "the name of a vault of AWS Backup"}
)

// imported is one member of the context import.
type imported struct {
	name  string
	value *string
	form  form
}

func (i *Import) members() []imported {
	return []imported{
		{"idempotency", &i.Idempotency, tableForm}, {"outbox", &i.Outbox, tableForm}, {"outboxStream", &i.OutboxStream, streamForm},
		{"payments", &i.Payments, tableForm}, {"apiKeys", &i.APIKeys, tableForm}, {"audit", &i.Audit, tableForm}, {"keys", &i.Keys, tableForm},
		{"kmsKey", &i.KMSKey, kmsForm}, {"backupVault", &i.BackupVault, vaultForm},
	}
}

// named lists the members that are imported, for the descriptions of functions.
//
// A table that was the stack's own and is imported under its name is another expression in a template and the same text in a function's
// environment. CDK makes a new version for the first, and Lambda refuses one that is equal to the last: "A version for this Lambda
// function exists". The description is part of the function, so that it differs too.
func (i Import) named() string {
	var names []string
	for _, m := range i.members() {
		if *m.value != "" {
			names = append(names, m.name)
		}
	}
	if names == nil {
		return ""
	}
	return " Imported: " + strings.Join(names, ", ") + "."
}

// tables are what NewTables takes; nil where new ones are made.
func (i Import) tables() *idemconstruct.ImportedTables {
	if i.Idempotency == "" {
		return nil
	}
	return &idemconstruct.ImportedTables{Idempotency: i.Idempotency, Outbox: i.Outbox, OutboxStream: i.OutboxStream}
}

// keysTable is the name of the imported table of keys; "" where a new one is made.
func (i Import) keysTable() string {
	if i.Keys == newKeys {
		return ""
	}
	return i.Keys
}

// importedKey is the ARN of the imported KMS key; "" where a new one is made.
func (c Config) importedKey() string {
	if c.Import.KMSKey == "" {
		return ""
	}
	return fmt.Sprintf("arn:%s:kms:%s:%s:key/%s", partition(c.Region), c.Region, c.Account, c.Import.KMSKey)
}

// partition is that of a Region. An ARN that is imported must be whole at synthesis.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// madeOrImported makes a table of the application's, or imports the one that is there.
func madeOrImported(scope constructs.Construct, id, there string, shape schema.Table, props idemconstruct.TablesProps) awsdynamodb.ITableV2 {
	if there != "" {
		return idemconstruct.ImportTable(scope, id, there, "")
	}
	return idemconstruct.NewTable(scope, id, shape, props)
}

// disposable says that what holds data goes with the stack.
func (c Config) disposable() bool { return c.Local && !c.RetainTables }

// runsStopped are the functions that a stopped stack runs: they move nothing.
var runsStopped = []string{"authorizer", "drift"}

// reserved is what a function has reserved of the account's concurrency; 0 is a function that never runs.
func (c Config) reserved(name string) *float64 {
	if c.Stopped && !slices.Contains(runsStopped, name) {
		return jsii.Number(0)
	}
	return c.Concurrency.of(name)
}

const importForm = `a map of names: {"idempotency", "outbox", "outboxStream", "payments", "apiKeys", "audit", "keys", "kmsKey", "backupVault"}; idemctl tables check prints it`

// readRecovery fills in what a stack is deployed onto, and whether it runs. Account, Region and encryption are read before.
func (r *reader) readRecovery(config *Config) {
	config.Stopped = choice(r, "stopped", "false", "true") == "true"
	config.RetainTables = choice(r, "retainTables", "false", "true") == "true"
	if config.RetainTables && !config.Local {
		r.refuse("retainTables", "true", "nothing, unless local=true: tables of other stacks always stay")
	}
	before := len(r.refused)
	config.Import = r.imports()
	config.Lost = choice(r, "lost", LostNothing, LostRecords)
	if len(r.refused) > before {
		return
	}
	r.checkBackupCopy(*config)
	r.checkTables(*config)
	r.checkKeys(*config)
	if config.Import.tables() != nil && r.lookup("lost") == nil {
		r.refuse("lost", "", fmt.Sprintf("%s where the imported tables hold everything that was ever written, else %s", LostNothing, LostRecords))
	}
}

// imports reads the context import: a map of cdk.json or of a stage's file, or its JSON from the command line.
func (r *reader) imports() (there Import) {
	const key = "import"
	given := r.lookup(key)
	if given == nil {
		return there
	}
	text, isText := given.(string)
	if !isText {
		encoded, err := json.Marshal(given)
		if err != nil {
			r.refuse(key, fmt.Sprint(given), importForm)
			return there
		}
		text = string(encoded)
	}
	var names map[string]string
	if err := json.Unmarshal([]byte(text), &names); err != nil || len(names) == 0 {
		r.refuse(key, text, importForm)
		return there
	}
	for _, m := range there.members() {
		value, named := names[m.name]
		if delete(names, m.name); !named {
			continue
		}
		if *m.value = value; !m.form.pattern.MatchString(value) {
			r.refuse(key+"."+m.name, value, m.form.allowed)
		}
	}
	for _, unknown := range slices.Sorted(maps.Keys(names)) {
		r.refuse(key+"."+unknown, names[unknown], importForm)
	}
	return there
}

// checkTables holds the names of tables against each other. What the tables are like can't be seen at synthesis.
func (r *reader) checkTables(config Config) {
	there := config.Import
	together := []string{there.Idempotency, there.Outbox, there.OutboxStream, there.Payments}
	if slices.Contains(together, "") && strings.Join(together, "") != "" {
		r.refuse("import", strings.Join(together, ", "), "idempotency, outbox, outboxStream and payments together, or none of them: one transaction writes all three tables")
		return
	}
	seen := map[string]string{}
	for _, m := range there.members()[:7] {
		if other := seen[*m.value]; *m.value != "" && other != "" {
			r.refuse("import."+m.name, *m.value, "another table than import."+other)
		}
		seen[*m.value] = m.name
	}
	if there.OutboxStream == "" {
		return
	}
	if part := strings.Split(there.OutboxStream, ":"); part[3] != config.Region || part[4] != config.Account || !strings.HasPrefix(part[5], "table/"+there.Outbox+"/") {
		r.refuse("import.outboxStream", there.OutboxStream, fmt.Sprintf("the stream of import.outbox = %q in %s, account %s", there.Outbox, config.Region, config.Account))
	}
}

// checkBackupCopy demands a vault that is not lost with the Region and the account that the backups are of.
func (r *reader) checkBackupCopy(config Config) {
	switch {
	case config.BackupCopy == "":
	case !config.Backup:
		r.refuse("backupCopy", config.BackupCopy, "nothing, unless backup=on")
	case strings.Contains(config.BackupCopy, ":backup:"+config.Region+":"+config.Account+":"):
		r.refuse("backupCopy", config.BackupCopy, "a vault in another Region, or of another account")
	}
}

// checkKeys demands the keys of what is encrypted: with others nobody reads it.
func (r *reader) checkKeys(config Config) {
	switch there := config.Import; {
	case config.Encryption == Off && there.Keys+there.KMSKey != "":
		r.refuse("import.keys", there.Keys+" "+there.KMSKey, "nothing with encryption=off")
	case there.keysTable() != "" && there.KMSKey == "":
		r.refuse("import.kmsKey", "", "the id of the KMS key that wraps what is in import.keys")
	case config.Encryption != Off && there.tables() != nil && there.Keys == "":
		r.refuse("import.keys", "", "the table of the keys that the imported tables are encrypted with; "+newKeys+", if nothing in them is encrypted")
	}
}
