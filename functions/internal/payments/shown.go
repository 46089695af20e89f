package payments

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// objectPaths are where the provider shows objects of a kind, by the kind.
var objectPaths = map[string]string{
	"charge": chargesPath, "legacy_charge": legacyChargesPath, "refund": refundsPath, "screening": screeningsPath, "release": releasesPath,
	"payout": payoutsPath, "legacy_payout": legacyPayoutsPath,
}

// chainPaths are where what the messages of one operation make is listed, by their position from 1, and by the kind of any of the objects.
func chainPaths(kind string) map[int][]string {
	switch strings.TrimPrefix(kind, legacyPrefix) {
	case "charge":
		return map[int][]string{1: {chargesPath, legacyChargesPath}}
	case "refund":
		return map[int][]string{1: {refundsPath}}
	}
	return map[int][]string{1: {screeningsPath}, 2: {payoutsPath, legacyPayoutsPath}, 3: {releasesPath}}
}

// Shown is the provider's object of a kind and an id.
func (p *Provider) Shown(ctx context.Context, kind, id string) (Shown, error) {
	path, ok := objectPaths[kind]
	if !ok {
		return Shown{}, fmt.Errorf("payments: the provider has no objects %q", kind)
	}
	object, found, err := p.object(ctx, path, id)
	if err == nil && !found {
		err = fmt.Errorf("payments: the provider has no %s %s any more", kind, id)
	}
	return object, err
}

// Charge is the provider's charge of an id, whether its endpoint honours keys or not. It is the zero value where there is none.
func (p *Provider) Charge(ctx context.Context, id string) (Shown, error) {
	for _, path := range []string{chargesPath, legacyChargesPath} {
		if object, found, err := p.object(ctx, path, id); err != nil || found {
			return object, err
		}
	}
	return Shown{}, nil
}

// MadeBy are all objects under the keys of the operation that made an object, in the order of its chain.
func (p *Provider) MadeBy(ctx context.Context, operation idem.OperationID, kind string) (all []Shown, err error) {
	for n, paths := range chainPaths(kind) {
		for _, path := range paths {
			body, err := p.listed(ctx, path, operation.Message(n))
			if err != nil {
				return nil, err
			}
			var objects []Shown
			if err := json.Unmarshal(body, &objects); err != nil {
				return nil, fmt.Errorf("payments: malformed look-up: %w", err)
			}
			for _, o := range objects {
				if o.Key != "" && o.Key != operation.Message(n) {
					return nil, fmt.Errorf("%w: %s of %s is listed among those of %s", errAnotherKey, o.ID, o.Key, operation.Message(n))
				}
			}
			all = append(all, objects...)
		}
	}
	slices.SortFunc(all, func(a, b Shown) int { return strings.Compare(string(a.Key)+a.ID, string(b.Key)+b.ID) })
	return all, nil
}

// object gets one object; found is false where there is none.
func (p *Provider) object(ctx context.Context, path, id string) (object Shown, found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"/"+url.PathEscape(id), nil)
	if err != nil {
		return object, false, err
	}
	trace.Inject(ctx, req.Header)
	res, err := p.lookUp.Do(req)
	if err != nil {
		return object, false, err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusNotFound:
		return object, false, nil
	case http.StatusOK:
	default:
		return object, false, fmt.Errorf("payments: look-up answered with status %d", res.StatusCode)
	}
	if err := json.UnmarshalRead(io.LimitReader(res.Body, lookUpBytesMax), &object); err != nil {
		return object, false, fmt.Errorf("payments: malformed look-up: %w", err)
	}
	return object, true, nil
}
