package awsctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
)

// dataKeys are the commands about the keys that tenants' data is encrypted with. A key is never written or shown but wrapped by KMS.
type dataKeys struct {
	Check  checkKeys  `cmd:"" help:"Open everything in the tables that is encrypted, and list the tenants of which something can't be opened."`
	Export exportKeys `cmd:"" help:"Write the wrapped data keys of all tenants to a new file, for another Region."`
	Import importKeys `cmd:"" help:"Put the wrapped data keys of a file into the table of keys, before anything executes there."`
	Erase  eraseKeys  `cmd:"" help:"Erase the data keys of one tenant for good: nothing that is stored of it can be read any more, here or from a backup."`
}

func newDataKeys(cfg Config) *dataKeys {
	return &dataKeys{checkKeys{cfg}, exportKeys{cfg: cfg}, importKeys{cfg: cfg}, eraseKeys{cfg: cfg}}
}

var (
	keyIDForm  = regexp.MustCompile(`^(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
	keyARNForm = regexp.MustCompile(`^arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]{12}:key/([a-z0-9-]+)$`)
)

// keysIn are the keys of a deployment's table, and the id of the KMS key that wraps them.
type keysIn struct {
	*tablekeys.Keys
	of           Deployment
	table, kmsID string
}

func (c Config) keys(ctx context.Context) (in keysIn, err error) {
	of, err := c.Deployment(ctx)
	if err != nil {
		return in, err
	}
	if of.KeysTable == "" || of.KMSKeyID == "" {
		return in, idemctl.Environment(fmt.Errorf("%s and %s are not set: this stack encrypts nothing, or you may not see its keys", environment.KeysTable, environment.KMSKeyID))
	}
	in.of, in.table, in.kmsID = of, of.KeysTable, of.KMSKeyID
	if arn := keyARNForm.FindStringSubmatch(of.KMSKeyID); arn != nil {
		in.kmsID = arn[2]
	}
	if !keyIDForm.MatchString(in.kmsID) {
		return in, idemctl.Environment(fmt.Errorf("%s = %q: must be the id or the ARN of the key, and no alias: it is compared with another Region's", environment.KMSKeyID, of.KMSKeyID))
	}
	wrapper, err := awskms.New(kms.NewFromConfig(in.of.AWS), of.KMSKeyID)
	if err != nil {
		return in, err
	}
	in.Keys, err = tablekeys.New(of.dynamoDB(), tablekeys.Config{Table: of.KeysTable, Wrapper: wrapper})
	return in, err
}

// everyone are the keys of all tenants, by tenant.
func (in keysIn) everyone(ctx context.Context) (all []tablekeys.Wrapped, err error) {
	err = in.Each(ctx, func(w tablekeys.Wrapped) error {
		all = append(all, w)
		return nil
	})
	slices.SortFunc(all, func(a, b tablekeys.Wrapped) int { return strings.Compare(a.Tenant, b.Tenant) })
	return all, err
}

// exported is the file.
type exported struct {
	Version    int       `json:"version"`
	ExportedAt time.Time `json:"exported_at"`
	// KMSKey is the id of the key that wraps them: the same in all Regions of a multi-Region key.
	KMSKey  string              `json:"kms_key"`
	Tenants []tablekeys.Wrapped `json:"tenants"`
}

// exportedVersion is the version of the file that this release writes and reads.
const exportedVersion = 1

type exportKeys struct {
	cfg      Config `kong:"-"`
	File     string `arg:"" help:"The file to write. It must not be there."`
	Under    string `placeholder:"ARN" help:"Wrap the keys anew under this KMS key, in its Region. You must be allowed to decrypt with the stack's key and to encrypt with this one. Not for a multi-Region key, which both stacks have."`
	Endpoint string `placeholder:"URL" help:"Where KMS is asked for --under, such as an endpoint of your network. Default: AWS's of the key's Region."`
	idemctl.Reasoned
}

// Validate judges the command line.
func (e *exportKeys) Validate() error {
	switch {
	case e.Under != "" && !keyARNForm.MatchString(e.Under):
		return fmt.Errorf("--under must be %s", keyARNForm)
	case e.Endpoint != "" && e.Under == "":
		return errors.New("--endpoint is for --under")
	}
	return nil
}

// Run implements the command.
func (e *exportKeys) Run(d *idemctl.Desk) error {
	in, err := e.cfg.keys(d.Context())
	if err != nil {
		return err
	}
	all, err := in.everyone(d.Context())
	if err != nil {
		return err
	}
	under := in.kmsID
	if e.Under != "" {
		under = keyARNForm.FindStringSubmatch(e.Under)[2]
	}
	return shown(d, in.of, e.Write, operator.Task{
		Name: "keys export", Subject: in.table + " to " + e.File, Would: fmt.Sprintf("write the keys of %d tenants, wrapped under %s, to %s", len(all), under, e.File),
		Judge: func(context.Context) error {
			if err := makeable(e.File); err != nil {
				return err
			}
			if e.Under != "" && under == in.kmsID {
				return fmt.Errorf("%w: the keys are wrapped under %s already: leave --under out", operator.ErrRefused, under)
			}
			return nil
		},
		Act: func(ctx context.Context) (string, error) {
			if e.Under != "" {
				if err := in.rewrap(ctx, all, e.Under, e.Endpoint); err != nil {
					return "", err
				}
			}
			file := exported{Version: exportedVersion, ExportedAt: d.Now().UTC().Truncate(time.Second), KMSKey: under, Tenants: all}
			return fmt.Sprintf("exported the keys of %d tenants under %s", len(all), under), file.write(e.File)
		},
	}, e.Change())
}

// makeable refuses a file that can't be made: what is there is left alone, and the folder must be there.
func makeable(name string) error {
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is there already, or can't be made", operator.ErrRefused, name)
	}
	if folder, err := os.Stat(filepath.Dir(name)); err != nil || !folder.IsDir() {
		return fmt.Errorf("%w: there is no folder %s", operator.ErrRefused, filepath.Dir(name))
	}
	return nil
}

// rewrap wraps everything anew under a KMS key of another Region.
func (in keysIn) rewrap(ctx context.Context, all []tablekeys.Wrapped, arn, endpoint string) error {
	to, err := awskms.New(kms.NewFromConfig(in.of.AWS, func(o *kms.Options) {
		o.Region = keyARNForm.FindStringSubmatch(arn)[1]
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}), arn)
	if err != nil {
		return err
	}
	for i, w := range all {
		if all[i], err = in.Rewrap(ctx, w, to); err != nil {
			return fmt.Errorf("tenant %s: %w", w.Tenant, err)
		}
	}
	return nil
}

// write makes the file, readable by its owner only. A file that is there is left alone.
func (f exported) write(name string) (err error) {
	text, err := json.Marshal(f, json.Deterministic(true))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = syncFolder(filepath.Dir(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(name)) // half a file is none
	}
	return nil
}

// syncFolder has the disk keep the names in a folder.
func syncFolder(name string) error {
	folder, err := os.Open(name) //nolint:gosec // the operator names the file in it
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

type importKeys struct {
	cfg    Config   `kong:"-"`
	File   string   `arg:"" help:"A file that keys export has written."`
	Erased []string `placeholder:"TENANT" help:"Tenants whose keys were erased after the export: their keys are not brought back. Separated by commas."`
	idemctl.Reasoned
}

// Run implements the command. It may be repeated, also with a newer file.
func (i *importKeys) Run(d *idemctl.Desk) error {
	in, err := i.cfg.keys(d.Context())
	if err != nil {
		return err
	}
	file, err := readExported(i.File)
	if err != nil {
		return idemctl.Environment(err)
	}
	if err := file.erase(i.Erased); err != nil {
		return idemctl.Environment(err)
	}
	return shown(d, in.of, i.Write, operator.Task{
		Name: "keys import", Subject: i.File + " to " + in.table,
		Would: fmt.Sprintf("put the keys of %d tenants, exported %s, into %s", len(file.Tenants), file.ExportedAt.UTC().Format(time.RFC3339), in.table),
		Judge: func(ctx context.Context) error { return in.takes(ctx, file) },
		Act: func(ctx context.Context) (string, error) {
			changed := 0
			for _, w := range file.Tenants {
				did, err := in.Keep(ctx, w)
				if err != nil {
					return "", fmt.Errorf("tenant %s: %w", w.Tenant, err)
				}
				if did {
					changed++
				}
			}
			return fmt.Sprintf("imported the keys of %d tenants, of %d in the file", changed, len(file.Tenants)), nil
		},
	}, i.Change())
}

func readExported(name string) (file exported, err error) {
	text, err := os.ReadFile(name) //nolint:gosec // the operator names the file
	if err != nil {
		return file, err
	}
	if err := json.Unmarshal(text, &file, json.RejectUnknownMembers(true)); err != nil {
		return file, fmt.Errorf("%s is no file of keys export: %w", name, err)
	}
	if file.Version != exportedVersion {
		return file, fmt.Errorf("%s has version %d, this release reads %d", name, file.Version, exportedVersion)
	}
	return file, nil
}

// erase makes tombstones of tenants' keys. A tenant that the file does not have is an error: a name that is misspelt erases nobody.
func (f *exported) erase(tenants []string) error {
	for _, tenant := range tenants {
		at := slices.IndexFunc(f.Tenants, func(w tablekeys.Wrapped) bool { return w.Tenant == tenant })
		if at < 0 {
			return fmt.Errorf("--erased: the file has no tenant %q", tenant)
		}
		f.Tenants[at].ErasedThrough, f.Tenants[at].Keys = f.Tenants[at].Current, nil
	}
	return nil
}

type eraseKeys struct {
	cfg    Config `kong:"-"`
	Tenant string `arg:"" help:"The tenant, as the application names it."`
	idemctl.Reasoned
}

// Run implements the command. It may be repeated. A tenant without keys is refused: a name that is misspelt erases nobody, and leaves no
// tombstone that would refuse somebody later.
func (e *eraseKeys) Run(d *idemctl.Desk) error {
	in, err := e.cfg.keys(d.Context())
	if err != nil {
		return err
	}
	left := e.standing(d.Context())
	return shown(d, in.of, e.Write, operator.Task{
		Name: "keys erase", Subject: e.Tenant, Tenant: e.Tenant, // of one that was not answered nothing else says whose
		Would: fmt.Sprintf("erase the keys of tenant %q for good: stored answers, and messages that wait for their delivery, are never read again%s", e.Tenant, left),
		Judge: func(ctx context.Context) error {
			all, err := in.everyone(ctx)
			if err == nil && !slices.ContainsFunc(all, func(w tablekeys.Wrapped) bool { return w.Tenant == e.Tenant }) {
				err = fmt.Errorf("%w: %s has no keys of a tenant %q", operator.ErrRefused, in.table, e.Tenant)
			}
			return err
		},
		Act: func(ctx context.Context) (string, error) {
			return fmt.Sprintf("erased the keys of tenant %q%s", e.Tenant, left), in.Erase(ctx, e.Tenant)
		},
	}, e.Change())
}

// standing says which messages of the tenant stand in a queue. Once its keys are erased nobody delivers them, and one that may have been
// called waits for a person. Whatever the queues say, and if they can't be read, an erasure must be possible: it only says so.
func (e *eraseKeys) standing(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	ids, err := e.queued(ctx)
	switch {
	case err != nil:
		return fmt.Sprintf(". Whether messages of it stand in a queue could not be found out: %v", err)
	case len(ids) == 0:
		return ""
	}
	others := ""
	if len(ids) > namedMax {
		ids, others = ids[:namedMax], " and others"
	}
	return fmt.Sprintf(". Messages of it stand in a queue: %s%s. Nobody can open them then: they are not delivered, and one that may have been called waits for somebody to resolve it", strings.Join(ids, ", "), others)
}

// lookFor is for how long the queues are looked at, and namedMax how many messages of them are named.
const (
	lookFor  = 30 * time.Second
	namedMax = 20
)

// everAfter is later than any place in a queue.
var everAfter = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// queued are messages of the tenant that have not ended, as the sparse index has them: a few more than are named, where there are so many.
func (e *eraseKeys) queued(ctx context.Context) (ids []string, err error) {
	opened, err := e.cfg.Open(ctx)
	if err != nil {
		return nil, err
	}
	store := opened.Desk.Store
	for _, queue := range []string{storage.QueueOffer, storage.QueueUnknown, storage.QueueDead} {
		for shard := range store.Shards() {
			for cursor, more := "", true; more && len(ids) <= namedMax; more = cursor != "" {
				var refs []storage.MessageRef
				if refs, cursor, err = store.QueuedMessages(ctx, queue, shard, everAfter, 100, cursor); err != nil {
					return nil, err
				}
				for _, ref := range refs {
					if ref.Tenant == e.Tenant {
						ids = append(ids, string(ref.ID))
					}
				}
			}
		}
	}
	return ids, nil
}

// takes refuses a file whose keys the stack could not unwrap, and one with other keys than the table has.
func (in keysIn) takes(ctx context.Context, file exported) error {
	if file.KMSKey != in.kmsID {
		return fmt.Errorf("%w: the file's keys are wrapped under the KMS key %s, and this stack has %s: export them with --under, while that Region is there", operator.ErrRefused, file.KMSKey, in.kmsID)
	}
	var others []string
	for _, w := range file.Tenants {
		_, err := in.Lacks(ctx, w)
		switch {
		case errors.Is(err, tablekeys.ErrOtherKeys):
			others = append(others, w.Tenant)
		case err != nil:
			return fmt.Errorf("tenant %s: %w", w.Tenant, err)
		}
	}
	if others != nil {
		return fmt.Errorf("%w: %d tenants have begun here and have other keys: %.200s", operator.ErrRefused, len(others), strings.Join(others, ", "))
	}
	return nil
}

type checkKeys struct {
	cfg Config `kong:"-"`
}

// KeysAnswer is what `keys check` answers as JSON.
type KeysAnswer struct {
	// Records and Messages are those that are encrypted, and Erased those among them whose tenant's keys were erased.
	Records  int `json:"records"`
	Messages int `json:"messages"`
	Erased   int `json:"erased"`
	// Unreadable has an entry for each tenant of which something can't be opened.
	Unreadable []Unreadable `json:"unreadable"`
}

// Unreadable are one tenant's rows that can't be opened.
type Unreadable struct {
	// Tenant is whose they are, and Rows how many.
	Tenant string `json:"tenant"`
	Rows   int    `json:"rows"`
	// Why is the first one's reason.
	Why string `json:"why"`
}

// Run implements the command.
func (k *checkKeys) Run(d *idemctl.Desk) error {
	in, err := k.cfg.keys(d.Context())
	if err != nil {
		return err
	}
	of, err := k.cfg.Deployment(d.Context())
	if err != nil {
		return err
	}
	opened, err := k.cfg.Open(d.Context())
	if err != nil {
		return err
	}
	c := opener{client: of.dynamoDB(), store: opened.Desk.Store, erased: map[string]bool{}, wrong: map[string]*Unreadable{}}
	err = in.Each(d.Context(), func(w tablekeys.Wrapped) error {
		c.erased[w.Tenant] = w.ErasedThrough > 0
		return nil
	})
	if err == nil {
		err = c.all(d.Context(), of.name(Idempotency), of.name(Outbox))
	}
	c.found.Unreadable = []Unreadable{}
	lines := []string{fmt.Sprintf("%d records and %d messages are encrypted, %d of them of tenants whose keys were erased", c.found.Records, c.found.Messages, c.found.Erased)}
	for _, tenant := range slices.Sorted(maps.Keys(c.wrong)) {
		wrong := *c.wrong[tenant]
		c.found.Unreadable = append(c.found.Unreadable, wrong)
		lines = append(lines, fmt.Sprintf("%s  %d can't be opened: %s", tenant, wrong.Rows, wrong.Why))
	}
	if err != nil {
		lines = append(lines, "this is not all: the tables were not read to their end")
	} else if len(c.wrong) > 0 {
		err = idemctl.ErrDiffers
	}
	return errors.Join(d.Show(c.found, lines...), err)
}
