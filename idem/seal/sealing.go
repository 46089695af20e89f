package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

// sealing is the sealing of what one call writes for one tenant. The key is fetched when something needs it: what is
// sealed still, because nobody could open it, goes back as it came.
type sealing struct {
	store  *Store
	tenant string
	// happened says that what is to be written tells of what has happened, and must be stored although the tenant's key
	// is erased: then without what should have been sealed.
	happened bool
	key      *Key
}

func (s *Store) sealing(tenant string, happened bool) *sealing {
	return &sealing{store: s, tenant: tenant, happened: happened}
}

var (
	errNoTenant = errors.New("seal: the tenant must be given: it selects the key")
	errNoTopic  = errors.New("seal: the message's topic must be given: its evidence is bound to it")
)

// current fetches the key; without an id it is an erased one's.
func (x *sealing) current(ctx context.Context) (Key, error) {
	if x.key != nil {
		return *x.key, nil
	}
	if x.tenant == "" {
		return Key{}, errNoTenant
	}
	key, err := x.store.keys.get(ctx, x.tenant, currentKey)
	if x.happened && errors.Is(err, storage.ErrErased) {
		key, err = Key{}, nil
	}
	if err != nil {
		return Key{}, err
	}
	x.key = &key
	return key, nil
}

func (x *sealing) text(ctx context.Context, p place, plain []byte) ([]byte, error) {
	key, err := x.current(ctx)
	if err != nil {
		return nil, err
	}
	if key.ID == currentKey {
		return header(erased, currentKey), nil
	}
	return x.store.envelope.seal(key, p, plain)
}

// response seals a response; was says that it is one that could not be opened: in its envelope, or left out where its key is
// erased.
func (x *sealing) response(ctx context.Context, p place, r storage.Response, was bool) (storage.Response, bool, error) {
	switch {
	case was && sealed(r.Body):
		return r, true, nil
	case was && r.Status != 0 && len(r.Body)+len(r.Header) == 0: // it could not be opened, and was left out: it stays erased under whatever key there is now
		return storage.Response{Status: r.Status, Body: header(erased, currentKey)}, true, nil
	case empty(r) || x.store.cfg.OpenOnly:
		return r, false, nil
	}
	body, err := x.text(ctx, p, pack(r))
	return storage.Response{Status: r.Status, Body: body}, true, err
}

func (x *sealing) record(ctx context.Context, r storage.Record) (_ storage.Record, err error) {
	p := responsePlace(r.Tenant, r.Key, r.OperationID, r.State, r.Response.Status)
	r.Response, r.Sealed, err = x.response(ctx, p, r.Response, r.Sealed)
	return r, err
}

// part seals a payload or evidence. One that is empty is sealed, too: what nobody has sealed is then none.
func (x *sealing) part(ctx context.Context, p place, plain []byte) (_ []byte, is bool, err error) {
	if x.store.cfg.OpenOnly {
		return plain, false, nil
	}
	text, err := x.text(ctx, p, plain)
	return text, true, err
}

// message seals what a message holds. One that could not be opened goes back as it came: what was refused in it must not
// become authentic by being sealed.
func (x *sealing) message(ctx context.Context, m storage.Message) (storage.Message, error) {
	m.EvidenceRefused = false // it is said of what is read
	if m.Sealed {
		return m, nil
	}
	payload, is, err := x.part(ctx, payloadPlace(m), m.Payload)
	if err != nil {
		return m, err
	}
	delivered, one, err := x.kept(ctx, evidencePlace(aDelivery, m.Tenant, m.RecordKey, m.ID, m.Topic), m.KeptDelivered, false)
	if err != nil {
		return m, err
	}
	declined, other, err := x.kept(ctx, evidencePlace(aDecline, m.Tenant, m.RecordKey, m.ID, m.Topic), m.KeptDeclined, false)
	if err != nil {
		return m, err
	}
	m.Payload, m.KeptDelivered, m.KeptDeclined, m.Sealed = payload, delivered, declined, is || one || other
	return m, nil
}

// kept seals what is kept of evidence; the provider's reference stays readable, as that of a settled message does.
func (x *sealing) kept(ctx context.Context, p place, k *storage.Kept, was bool) (_ *storage.Kept, is bool, err error) {
	if k == nil {
		return nil, false, nil
	}
	if was && sealed(k.Evidence) { // it goes back as it came
		return k, true, nil
	}
	text, is, err := x.part(ctx, p, k.Evidence)
	return &storage.Kept{Reference: k.Reference, Evidence: text}, is, err
}

// end seals what a patch keeps of evidence.
func (x *sealing) end(ctx context.Context, end storage.MessageEnd) (storage.MessageEnd, error) {
	if end.KeptDelivered == nil && end.KeptDeclined == nil {
		return end, nil
	}
	if end.Topic == "" {
		return end, errNoTopic
	}
	operation, _, err := end.ID.Operation()
	if err != nil {
		return end, fmt.Errorf("seal: message %q: %w", end.ID, err)
	}
	record, err := operation.RecordKey()
	if err != nil {
		return end, err
	}
	if end.KeptDelivered, _, err = x.kept(ctx, evidencePlace(aDelivery, x.tenant, record, end.ID, end.Topic), end.KeptDelivered, end.Sealed); err != nil {
		return end, err
	}
	end.KeptDeclined, _, err = x.kept(ctx, evidencePlace(aDecline, x.tenant, record, end.ID, end.Topic), end.KeptDeclined, end.Sealed)
	return end, err
}

func (x *sealing) messages(ctx context.Context, messages []storage.Message) ([]storage.Message, error) {
	all := make([]storage.Message, len(messages))
	for i, m := range messages {
		var err error
		if all[i], err = x.message(ctx, m); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// settlement seals everything that a settlement writes.
func (x *sealing) settlement(ctx context.Context, s storage.Settlement) (storage.Settlement, error) {
	var err error
	if s.Message, err = x.end(ctx, s.Message); err != nil {
		return s, err
	}
	if s.Replace != nil {
		whole, err := x.message(ctx, *s.Replace)
		if err != nil {
			return s, err
		}
		s.Replace = &whole
	}
	if s.Record != nil {
		end := *s.Record
		p := responsePlace(x.tenant, end.Key, end.OperationID, end.State, end.Response.Status)
		if end.Response, end.Sealed, err = x.response(ctx, p, end.Response, end.Sealed); err != nil {
			return s, err
		}
		s.Record = &end
	}
	if s.Next != nil {
		next, err := x.message(ctx, *s.Next)
		if err != nil {
			return s, err
		}
		s.Next = &next
	}
	return s, nil
}
