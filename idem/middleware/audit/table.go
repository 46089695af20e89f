package audit

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// Table writes one line for each route: its pattern, operation, kind, policy and retention. A policy is shown by the name
// of the published one that it is made of, and by every field in which it differs.
func Table(w io.Writer, routes []middleware.RouteInfo) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ROUTE\tOPERATION\tKIND\tRETENTION\tPOLICY")
	for _, r := range routes {
		retention := "-"
		if r.Retention() > 0 {
			retention = r.Retention().String()
		}
		fmt.Fprintln(t, strings.Join([]string{
			r.Pattern, operation(r), cmp.Or(string(r.Kind), "-"), retention, policy(r),
		}, "\t"))
	}
	return t.Flush()
}

func operation(r middleware.RouteInfo) string {
	if r.RenamedFrom != "" {
		return r.Operation + " (renamed from " + r.RenamedFrom + ")"
	}
	return cmp.Or(r.Operation, "-")
}

func policy(r middleware.RouteInfo) string {
	switch p := r.Policy; {
	case p.ExemptReason != "":
		return "exempt: " + p.ExemptReason
	case r.Operation == "" && r.Unsafe:
		return "none"
	case r.Operation == "":
		return "-"
	default:
		return strings.Join(append([]string{cmp.Or(p.Name, "custom")}, Differences(p)...), ", ")
	}
}

// Differences lists the fields in which a policy differs from the published one of its name, or from IETF where there is
// none of it: "InFlight = wait". Its retention, which every operation has of its own, is not among them.
func Differences(p idem.Policy) []string {
	base := published(p.Name)
	var differences []string
	is, was := reflect.ValueOf(p), reflect.ValueOf(base)
	for _, field := range reflect.VisibleFields(is.Type()) {
		if slices.Contains([]string{"Name", "ExemptReason", "Retention"}, field.Name) {
			continue
		}
		mine, theirs := is.FieldByIndex(field.Index).Interface(), was.FieldByIndex(field.Index).Interface()
		if !reflect.DeepEqual(mine, theirs) {
			differences = append(differences, fmt.Sprintf("%s = %v", field.Name, mine))
		}
	}
	return differences
}

// published is the policy that the name speaks of.
func published(name string) idem.Policy {
	for _, p := range []idem.Policy{idem.IETF(), idem.Stripe(), idem.Lenient()} {
		for _, candidate := range []idem.Policy{p, idem.Observe(p)} {
			if candidate.Name == name {
				return candidate
			}
		}
	}
	return idem.IETF()
}
