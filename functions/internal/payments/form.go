package payments

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idem-go/idem-aws/idem"
)

// errorsMax is how many errors an answer lists, and nameBytesMax the longest name of an unknown member that it repeats: a
// body of nothing else would be answered by more than its own size.
const (
	errorsMax    = 20
	nameBytesMax = 64
)

// Bounds of what the client chooses and the provider is sent, in characters.
const (
	nameRunesMax      = 64
	referenceRunesMax = 140
	// utf16Max is the last character of three bytes.
	utf16Max = '\uFFFF'
)

// AmountMax is the largest amount of a request, in minor units.
const AmountMax = 99_999_999

// entity ids, as clients may send them: no "/" or "#", which separate the parts of a row's key.
var idSyntax = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// form reads a request body strictly and collects every error, not only the first.
type form struct {
	members map[string]jsontext.Value
	read    []string
	errors  []idem.ProblemError
}

// newForm parses a JSON object. A body that is none is an error at the root pointer.
func newForm(body []byte) *form {
	f := &form{}
	if err := json.Unmarshal(body, &f.members); err != nil || f.members == nil {
		f.members = nil
		f.fail("", "must be a JSON object")
	}
	return f
}

func (f *form) fail(name, detail string) {
	pointer := ""
	if name != "" {
		pointer = "/" + string(jsontext.Pointer("").AppendToken(name)[1:])
	}
	f.errors = append(f.errors, idem.ProblemError{Pointer: pointer, Detail: detail})
}

// member returns a member's value and whether it is there.
func (f *form) member(name string, required bool) (jsontext.Value, bool) {
	f.read = append(f.read, name)
	value, ok := f.members[name]
	if !ok && required && f.members != nil {
		f.fail(name, "is required")
	}
	return value, ok
}

// text reads a string of runesMin..runesMax characters; a member that is not required may be left out.
func (f *form) text(name string, runesMin, runesMax int, required bool) string {
	value, ok := f.member(name, required)
	if !ok {
		return ""
	}
	var s string
	if value.Kind() != '"' || json.Unmarshal(value, &s) != nil {
		f.fail(name, "must be a string")
		return ""
	}
	if n := utf8.RuneCountInString(s); n < runesMin || n > runesMax {
		f.fail(name, fmt.Sprintf("must have %d to %d characters", runesMin, runesMax))
		return ""
	}
	return s
}

// name reads what identifies a source or a destination at the provider: 1 to [nameRunesMax] characters that can be printed, none
// beyond U+FFFF. So it has at most 192 bytes, and the provider takes 255.
func (f *form) name(member string) string {
	value := f.text(member, 1, nameRunesMax, true)
	if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || r > utf16Max }) {
		f.fail(member, "must not have control characters, or characters beyond U+FFFF")
		return ""
	}
	return value
}

// words reads a text that the client chose and may leave out, without control characters. At most four bytes each, its characters
// are within the 1,024 bytes that the provider takes.
func (f *form) words(member string, runesMax int) string {
	value := f.text(member, 0, runesMax, false)
	if strings.ContainsFunc(value, unicode.IsControl) {
		f.fail(member, "must not have control characters")
		return ""
	}
	return value
}

// amount reads an integer literal in minor units.
func (f *form) amount(name string) int64 {
	value, ok := f.member(name, true)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if value.Kind() != '0' || err != nil || n < 1 || n > AmountMax {
		f.fail(name, fmt.Sprintf("must be an integer from 1 to %d, in minor units", AmountMax))
		return 0
	}
	return n
}

// currency reads the ISO 4217 code, in capitals, of a currency that is in use.
func (f *form) currency(name string) string {
	code := f.text(name, 3, 3, true)
	if code == "" {
		return ""
	}
	if !isCurrency(code) {
		f.fail(name, "must be the ISO 4217 code, in capitals, of a currency in use")
		return ""
	}
	return code
}

// id reads the id of an entity.
func (f *form) id(name string) string {
	value := f.text(name, 1, 64, true)
	if value != "" && !idSyntax.MatchString(value) {
		f.fail(name, "must consist of letters, digits, _ and -")
		return ""
	}
	return value
}

// problem returns the collected errors, unknown members among them, at most [errorsMax] and the count of the others; nil when
// there are none.
func (f *form) problem() *idem.Problem {
	unknown := make([]string, 0)
	for name := range f.members {
		if !slices.Contains(f.read, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		if len(name) > nameBytesMax {
			f.fail("", fmt.Sprintf("has a member that is not known, with a name of %d bytes", len(name)))
			continue
		}
		f.fail(name, "is not known")
	}
	if len(f.errors) == 0 {
		return nil
	}
	if more := len(f.errors) - errorsMax; more > 0 {
		f.errors = f.errors[:errorsMax]
		f.fail("", fmt.Sprintf("has %d more errors, which are not listed", more))
	}
	p := idem.NewProblem(http.StatusBadRequest, "request_invalid", "Invalid request", "The request body is not valid.")
	p.Errors = f.errors
	return &p
}

// paymentRequest is the body of POST /v1/payments.
type paymentRequest struct {
	amount                      int64
	currency, source, reference string
}

func parsePayment(body []byte) (paymentRequest, *idem.Problem) {
	f := newForm(body)
	req := paymentRequest{
		amount: f.amount("amount"), currency: f.currency("currency"),
		source: f.name("source"), reference: f.words("reference", referenceRunesMax),
	}
	return req, f.problem()
}

// refundRequest is the body of POST /v1/payments/{id}/refunds.
type refundRequest struct{ amount int64 }

func parseRefund(body []byte) (refundRequest, *idem.Problem) {
	f := newForm(body)
	req := refundRequest{amount: f.amount("amount")}
	return req, f.problem()
}

// payoutRequest is the body of POST /v1/payouts.
type payoutRequest struct {
	from                  string
	amount                int64
	currency, destination string
}

func parsePayout(body []byte) (payoutRequest, *idem.Problem) {
	f := newForm(body)
	req := payoutRequest{
		from: f.id("from"), amount: f.amount("amount"), currency: f.currency("currency"),
		destination: f.name("destination"),
	}
	return req, f.problem()
}

// transferRequest is the body of POST /v1/transfers.
type transferRequest struct {
	from, to string
	amount   int64
	currency string
}

func parseTransfer(body []byte) (transferRequest, *idem.Problem) {
	f := newForm(body)
	req := transferRequest{from: f.id("from"), to: f.id("to"), amount: f.amount("amount"), currency: f.currency("currency")}
	if req.from != "" && req.from == req.to {
		f.fail("to", "must differ from from")
	}
	return req, f.problem()
}
