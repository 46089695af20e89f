package payments

import (
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/openapi"
)

// accepted are the currencies of ISO 4217 as it was published on 2026-01-01 (list one of its maintenance agency, SIX), less
// what no payment can have. They were compared with Debian's iso-codes of 2026, from which the withdrawn BGN is gone as well. When
// a new version of the library changes them, this list is changed with its date, the document and CHANGELOG.md.
const accepted = `
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE
CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY
KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO
NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB
TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG`

// VES, MRU, SLE, XCG and VED were refused, and DEM, ITL and XTS accepted.
func TestACurrencyIsOneThatIsInUseNow(t *testing.T) { // docs/payments-api.md "Conventions"
	want := strings.Fields(accepted)
	var got []string
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				if code := string([]rune{a, b, c}); isCurrency(code) {
					got = append(got, code)
				}
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("accepted %v, want %v", got, want)
	}
	for _, code := range []string{"", "EU", "eur", "EURO", "Eur", "ÄUR"} {
		if isCurrency(code) {
			t.Errorf("%q is accepted", code)
		}
	}
	for _, code := range notPaid {
		if slices.Contains(want, code) {
			t.Errorf("%s is refused and accepted", code)
		}
	}
}

func TestFormRefusesACurrencyThatNothingIsPaidIn(t *testing.T) {
	for code, refused := range map[string]bool{
		"EUR": false, "VES": false, "MRU": false, "SLE": false, "XCG": false, "VED": false, "XAF": false,
		"DEM": true, "ITL": true, "XTS": true, "XXX": true, "XAU": true, "XDR": true, "CLF": true, "USN": true, "HRK": true, "BGN": true,
	} {
		if _, problem := parsePayment([]byte(`{"amount":1,"currency":"` + code + `","source":"c"}`)); (problem != nil) != refused {
			t.Errorf("%s: %+v", code, problem)
		}
	}
}

// The document lists the codes that a request may have. An answer may show one that was withdrawn since.
func TestDocumentListsTheCurrencies(t *testing.T) {
	document, err := openapi.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range append(strings.Fields(accepted), append(notPaid, "DEM", "ITL", "XTS", "XXX", "XAU", "BGN", "eur", "")...) {
		if err := document.Validate("PaidCurrency", []byte(`"`+code+`"`)); (err == nil) != isCurrency(code) {
			t.Errorf("%s: the document says %v", code, err)
		}
	}
	if err := document.Validate("Currency", []byte(`"BGN"`)); err != nil {
		t.Error(err)
	}
}
