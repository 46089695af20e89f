package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/internal/token"
)

// apiKeys are the commands about API keys.
type apiKeys struct {
	Create createKey `cmd:"" help:"Create a key, and show it once. It is stored nowhere."`
	Revoke revokeKey `cmd:"" help:"Revoke a key for ever."`
	Limit  limitKeys `cmd:"" help:"Set what a tenant may ask for, in place of what the deployment says for every tenant."`
	List   listKeys  `cmd:"" help:"List the keys: names, scopes, limits, last use and ids. The keys themselves are not known."`
}

// keyTable is the table that the environment names.
func keyTable(ctx context.Context) (apikey.Table, error) {
	cfg, err := read[config.OperatorKeys]()
	if err != nil {
		return apikey.Table{}, err
	}
	aws, err := config.AWS(ctx)
	return apikey.Table{Client: dynamodb.NewFromConfig(aws), Name: cfg.APIKeysTable}, err
}

// keyDesk is where a key is changed: it needs the table of keys and the audit log, and no more (policy OperatorKeys).
func keyDesk(ctx context.Context) (apikey.Table, *operator.Clerk, error) {
	cfg, err := read[config.OperatorKeyChanges]()
	if err != nil {
		return apikey.Table{}, nil, err
	}
	aws, err := config.AWS(ctx)
	if err != nil {
		return apikey.Table{}, nil, err
	}
	client := dynamodb.NewFromConfig(aws)
	clerk, err := awsctl.NewClerk(client, cfg.AuditTable)
	return apikey.Table{Client: client, Name: cfg.APIKeysTable}, clerk, err
}

type createKey struct {
	Tenant  string         `required:"" help:"The tenant that owns it."`
	Name    string         `required:"" help:"The name that the tenant knows it by."`
	Scopes  []apikey.Scope `help:"What the key may be used for, separated by commas. Default: everything."`
	Expires time.Time      `help:"When it expires, in RFC 3339. Default: never."`
	Test    bool           `help:"Create a key that begins with idem_test_. It is no sandbox: where the deployment takes test keys it moves money as any other, and where TEST_KEYS is refuse it gets 403."`
	idemctl.Reasoned
}

var (
	tenantForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	nameForm   = regexp.MustCompile(`^[\p{L}\p{N}\p{P} ]{1,100}$`)
)

// Validate judges the command line.
func (c *createKey) Validate() error {
	switch {
	case !tenantForm.MatchString(c.Tenant):
		return fmt.Errorf("--tenant must have 1..64 letters, digits, dots, dashes and underscores")
	case !nameForm.MatchString(c.Name):
		return fmt.Errorf("--name must have 1..100 letters, digits, punctuation and spaces")
	case !c.Expires.IsZero() && !c.Expires.After(time.Now()):
		return fmt.Errorf("--expires must be in the future")
	}
	for _, scope := range c.Scopes {
		if !slices.Contains(apikey.Scopes(), scope) {
			return fmt.Errorf("--scopes: %q is none of %s", scope, apikey.JoinScopes(apikey.Scopes()))
		}
	}
	return nil
}

// created is the answer to create: the one time that the key is told.
type created struct {
	operator.Result
	Key string `json:"key,omitempty"`
	// Note says what a test key is.
	Note string `json:"note,omitempty"`
}

// testNote is said with each test key.
const testNote = "a test key differs by its prefix only: it moves money wherever test keys are accepted, and gets 403 where TEST_KEYS is refuse"

// Run implements the command. The entry of the audit log names the key by its id before there is one: a process that dies in
// between leaves a key that nobody has, and that can be revoked.
func (c *createKey) Run(d *idemctl.Desk) error {
	keys, clerk, err := keyDesk(d.Context())
	if err != nil {
		return err
	}
	prefix, note := token.Live, ""
	if c.Test {
		prefix, note = token.Test, testNote
	}
	earlier, err := keys.List(d.Context(), c.Tenant)
	if err != nil {
		return err
	}
	secret, new := token.New(prefix), c.key()
	new.ID, new.Limits = token.ID(secret), limitsOf(earlier)
	subject := new.ID
	if !c.Write {
		subject = c.Name // a dry run makes none
	}
	result, err := clerk.Do(d.Context(), operator.Task{
		Name: "apikey create", Subject: subject, Tenant: c.Tenant,
		Would: fmt.Sprintf("create a key of %s that is for %s and expires %s, with %s", c.Tenant, apikey.JoinScopes(new.Scopes), day(new.ExpiresAt), limitWords(new.Limits)),
		Act: func(ctx context.Context) (string, error) {
			if err := keys.Insert(ctx, new); err != nil {
				return "", err
			}
			if err := sameLimits(ctx, keys, new); err != nil { // the key is there: its secret is shown now, or never
				note = strings.TrimSpace(note + " Its limits could not be compared with those of the tenant's other keys (" + err.Error() + "): look at apikey list, and set them by apikey limit.")
			}
			return "created", nil
		},
	}, c.Change())
	if idemctl.Unfinished(err) {
		return err
	}
	if !c.Write {
		return d.Show(created{Result: result, Note: note}, noted(note, "dry run: would "+result.Outcome)...)
	}
	return errors.Join(d.Show(created{result, secret, note}, noted(note, "id   "+new.ID, "key  "+secret)...), err)
}

// sameLimits gives a new key the limits that its tenant's other keys have once it is there: apikey limit may have set them since they were
// looked for. It looks for new keys again after it has set them, so that one of the two finds the other's.
func sameLimits(ctx context.Context, keys apikey.Table, new apikey.Key) error {
	all, err := keys.List(ctx, new.Tenant)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(all, func(k apikey.Key) bool { return k.ID == new.ID })
	if limits := limitsOf(others); len(others) > 0 && limits != new.Limits {
		return keys.Limit(ctx, new.Tenant, new.ID, limits)
	}
	return nil
}

// noted puts the note, if any, before the lines.
func noted(note string, lines ...string) []string {
	if note == "" {
		return lines
	}
	return append([]string{"note " + note}, lines...)
}

func (c *createKey) key() apikey.Key {
	scopes := slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
	if len(scopes) == 0 {
		scopes = apikey.Scopes()
	}
	return apikey.Key{
		Tenant: c.Tenant, Name: c.Name, Scopes: scopes, CreatedAt: time.Now(), CreatedBy: strings.TrimSpace(c.Actor), ExpiresAt: c.Expires,
	}
}

type revokeKey struct {
	ID string `arg:"" help:"Whole id of the key, as apikey list shows it: a beginning would need a scan of the table. Never the key itself."`
	idemctl.Reasoned
}

// Validate judges the command line. It does not repeat what may be a key.
func (r *revokeKey) Validate() error {
	if !token.IsID(r.ID) {
		return errors.New("not the whole id of a key: apikey list shows the ids")
	}
	return nil
}

// Run implements the command.
func (r *revokeKey) Run(d *idemctl.Desk) error {
	keys, clerk, err := keyDesk(d.Context())
	if err != nil {
		return err
	}
	found, err := keys.Key(d.Context(), r.ID)
	switch {
	case err != nil:
		return err
	case found == nil:
		return operator.ErrNotFound
	}
	result, err := clerk.Do(d.Context(), operator.Task{
		Name: "apikey revoke", Subject: r.ID, Tenant: found.Tenant, Would: fmt.Sprintf("revoke the key %q of %s", found.Name, found.Tenant),
		Act: func(ctx context.Context) (string, error) {
			key, err := keys.Revoke(ctx, r.ID, strings.TrimSpace(r.Actor), time.Now())
			return "revoked " + day(key.RevokedAt), err
		},
	}, r.Change())
	return shown(d, r.Write, result, err)
}

type listKeys struct {
	Tenant string `help:"List only the keys of this tenant."`
}

// Run implements the command.
func (l *listKeys) Run(d *idemctl.Desk) error {
	table, err := keyTable(d.Context())
	if err != nil {
		return err
	}
	keys, err := table.List(d.Context(), l.Tenant)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, k := range keys {
		rows = append(rows, []string{
			k.State(time.Now()), k.Tenant, k.Name, day(k.CreatedAt), day(k.ExpiresAt), day(k.LastUsed), k.ID, limitWords(k.Limits), apikey.JoinScopes(k.Scopes),
		})
	}
	return d.Rows(keys, []string{"state", "tenant", "name", "created", "expires", "last used", "id", "limits", "scopes"}, rows)
}

func day(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format(time.RFC3339)
}
