package audit

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Owners are the tenants that ids belong to: of operations, of an application's rows, of what the provider made for them.
type Owners map[string][]string

// Add notes that an id is a tenant's. An id that two tenants chose themselves is both's.
func (o Owners) Add(id, tenant string) {
	if id != "" && !slices.Contains(o[id], tenant) {
		o[id] = append(o[id], tenant)
	}
}

// foreign says that an id is somebody's, and not the tenant's.
func (o Owners) foreign(id, tenant string) bool {
	return len(o[id]) > 0 && !slices.Contains(o[id], tenant)
}

// Row says whose a message is, and whose the record that it belongs to.
type Row struct{ ID, Tenant, RecordTenant string }

// TenantCounts are what [Tenants] has judged.
type TenantCounts struct{ Answers, IDs, Foreign, Rows int }

// word is what may be an id in an answer.
var word = regexp.MustCompile(`[A-Za-z0-9_-]{6,}`)

// Tenants holds every answer of a run, and every message, against I5: no answer names an id that is another tenant's, unless the
// request did; whoever asks by another tenant's id is told nothing but that it is not there, whatever the status; and a message is
// its record's tenant's.
//
// It knows another tenant's data by ids only: of operations, payments, transfers, accounts, and objects of the provider. It cannot
// see an answer that tells of another tenant without an id, by its time for example, nor answers that nobody heard. An account
// whose name two tenants have chosen is nobody's alone.
func Tenants(heard []Exchange, owners Owners, rows []Row) (broken []string, counts TenantCounts) {
	blame := func(format string, arguments ...any) {
		broken = append(broken, "I5: "+fmt.Sprintf(format, arguments...))
	}
	for _, e := range heard {
		if e.Tenant == "" {
			continue
		}
		counts.Answers++
		asked := map[string]bool{}
		for _, id := range word.FindAllString(e.Path+" "+string(e.Sent), -1) {
			asked[id] = true
		}
		told := strings.Join(append(e.Header.Values("Location"), string(e.Body)), " ")
		for _, id := range word.FindAllString(told, -1) {
			counts.IDs += min(1, len(owners[id]))
			if owners.foreign(id, e.Tenant) && !asked[id] {
				blame("%s is of %v, and told to another: %v", id, owners[id], e)
			}
		}
		for _, id := range word.FindAllString(e.Path, -1) {
			if !owners.foreign(id, e.Tenant) {
				continue
			}
			counts.Foreign++
			if !nothing(e) {
				blame("%s is of %v, and another asked for it: %v", id, owners[id], e)
			}
		}
	}
	for _, r := range rows {
		counts.Rows++
		if r.Tenant != r.RecordTenant {
			blame("message %s is of %s, its record of %s", r.ID, r.Tenant, r.RecordTenant)
		}
	}
	return broken, counts
}

// nothing says that an answer tells only that there is nothing, or that nobody looked.
func nothing(e Exchange) bool {
	switch e.Status {
	case http.StatusNotFound:
		return !bytes.Contains(e.Body, []byte(`"state"`))
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= http.StatusInternalServerError
}
