package canonical

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// PathRule says how the path of a request counts.
type PathRule string

// The rules for the path.
const (
	// PathWhole counts the whole path, escaped as it was sent: the zero value.
	PathWhole PathRule = ""
	// PathWildcards counts what the wildcards of the matched pattern stand for, in the order of the pattern. The fixed parts
	// of the path, and the wildcards' names, may change.
	PathWildcards PathRule = "wildcards"
	// PathParameters counts the parameters that a router of another kind found, by name.
	PathParameters PathRule = "parameters"
)

// Selection says what of a request counts. The zero value counts everything. A fingerprint carries its selection as text,
// so that a later request is compared under the selection of the earlier one, whatever the release selects by then.
type Selection struct {
	// Path says what of the path counts. The zero value, PathWhole, counts all of it.
	Path PathRule
	// IgnorePath leaves out parameters by name, and wildcards by their position from "1". It needs a rule other than
	// PathWhole.
	IgnorePath []string
	// IgnoreQuery leaves out query parameters by name; a name that ends in "*" stands for all that begin with the rest.
	IgnoreQuery []string
	// IgnoreTracking leaves out the query parameters of [Tracking].
	IgnoreTracking bool
	// Fields picks the fields of a JSON body that count; nil means the whole body. Other bodies always count whole.
	Fields *Fields
}

// SelectionBytesMax is the longest text of a selection, in bytes. Each record stores one.
const SelectionBytesMax = 1024

// The names in a selection's text. None is ever given another meaning.
const (
	selectPath     = "path"
	selectTracking = "tracking"
	ignorePath     = "ignore_path"
	ignoreQuery    = "ignore_query"
	includeFields  = "include"
	excludeFields  = "exclude"
)

// trackingVersion names the list of Tracking in a selection's text. A list that changes gets a new version; the older
// ones stay, for the records that were made under them.
const trackingVersion = "1"

// tracking1 are the parameters that advertising and mailing systems add to links.
var tracking1 = []string{
	"utm_*", "mtm_*", "hsa_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "_ga", "_gl", "fbclid", "igshid",
	"msclkid", "ttclid", "twclid", "li_fat_id", "yclid", "mc_cid", "mc_eid", "_hsenc", "_hsmi", "vero_id", "oly_anon_id", "oly_enc_id",
}

// Tracking returns the query parameters that IgnoreTracking leaves out: those that advertising and mailing systems add to
// links, "utm_*" among them.
func Tracking() []string { return slices.Clone(tracking1) }

// ErrSelection is returned for a selection that can't be applied: by its text, which a newer release wrote, or because
// the request does not say what it asks for, as wildcards where there was no pattern.
var ErrSelection = errors.New("canonical: the selection can't be applied")

// Validate returns an error for a selection that contradicts itself, or whose text has more than [SelectionBytesMax] bytes.
func (s Selection) Validate() error {
	if s.Path != PathWhole && s.Path != PathWildcards && s.Path != PathParameters {
		return fmt.Errorf("canonical: Selection.Path is %q, want one of its constants", s.Path)
	}
	if s.Path == PathWhole && len(s.IgnorePath) > 0 {
		return fmt.Errorf("canonical: Selection.IgnorePath is %q, which needs a Selection.Path other than the whole path", s.IgnorePath)
	}
	for _, name := range s.IgnoreQuery {
		if name == "" || name == "*" || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			return fmt.Errorf("canonical: Selection.IgnoreQuery has %q, want a name, or the beginning of names and one \"*\"", name)
		}
	}
	if n := len(s.String()); n > SelectionBytesMax {
		return fmt.Errorf("canonical: the selection's text has %d bytes, at most %d are allowed", n, SelectionBytesMax)
	}
	return nil
}

// String returns the selection's text, which [ParseSelection] reads: "" for the one that counts everything.
func (s Selection) String() string {
	v := url.Values{}
	if s.Path != PathWhole {
		v.Set(selectPath, string(s.Path))
	}
	if s.IgnoreTracking {
		v.Set(selectTracking, trackingVersion)
	}
	addSorted(v, ignorePath, s.IgnorePath)
	addSorted(v, ignoreQuery, s.IgnoreQuery)
	if s.Fields != nil {
		addSorted(v, includeFields, s.Fields.included)
		addSorted(v, excludeFields, s.Fields.excluded)
	}
	return v.Encode()
}

func addSorted(v url.Values, name string, values []string) {
	if len(values) > 0 {
		values = slices.Clone(values)
		slices.Sort(values)
		v[name] = slices.Compact(values)
	}
}

// ParseSelection returns the selection of a text, or [ErrSelection] for a text that no selection of this release has.
func ParseSelection(text string) (Selection, error) {
	v, err := url.ParseQuery(text)
	if err != nil {
		return Selection{}, fmt.Errorf("%w: %q is not the text of a selection", ErrSelection, text)
	}
	s := Selection{
		Path: PathRule(v.Get(selectPath)), IgnorePath: v[ignorePath], IgnoreQuery: v[ignoreQuery],
		IgnoreTracking: v.Get(selectTracking) == trackingVersion,
	}
	if v.Has(includeFields) || v.Has(excludeFields) {
		if s.Fields, err = NewFields(v[includeFields], v[excludeFields]); err != nil {
			return Selection{}, fmt.Errorf("%w: %w", ErrSelection, err)
		}
	}
	if s.String() != text || s.Validate() != nil {
		return Selection{}, fmt.Errorf("%w: this release does not know %q", ErrSelection, text)
	}
	return s, nil
}

// parameter is a part of the path that counts, by name.
type parameter struct{ name, value string }

// path returns what of the request's path counts, in the order of the names.
func (s Selection) path(in Input) ([]parameter, error) {
	var counted []parameter
	switch s.Path {
	case PathWhole:
		if in.Path != "" {
			counted = []parameter{{"", in.Path}}
		}
	case PathWildcards:
		if in.Wildcards == nil {
			return nil, fmt.Errorf("%w: the request matched no pattern with wildcards", ErrSelection)
		}
		for i, value := range in.Wildcards {
			counted = append(counted, parameter{strconv.Itoa(i + 1), value})
		}
	case PathParameters:
		if in.Parameters == nil {
			return nil, fmt.Errorf("%w: the request has no path parameters", ErrSelection)
		}
		for name, value := range in.Parameters {
			counted = append(counted, parameter{name, value})
		}
	}
	for _, name := range s.IgnorePath {
		i := slices.IndexFunc(counted, func(p parameter) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: the request has no path parameter %q to leave out", ErrSelection, name)
		}
		counted = slices.Delete(counted, i, i+1)
	}
	slices.SortFunc(counted, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return counted, nil
}

// query returns the query parameters that count.
func (s Selection) query(all map[string][]string) map[string][]string {
	if len(s.IgnoreQuery) == 0 && !s.IgnoreTracking {
		return all
	}
	counted := make(map[string][]string, len(all))
	for name, values := range all {
		if !names(s.IgnoreQuery, name) && !(s.IgnoreTracking && names(tracking1, name)) {
			counted[name] = values
		}
	}
	return counted
}

// names says whether the list names the parameter, itself or by its beginning.
func names(list []string, parameter string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		beginning, any := strings.CutSuffix(name, "*")
		return name == parameter || any && strings.HasPrefix(parameter, beginning)
	})
}
