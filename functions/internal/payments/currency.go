package payments

import (
	"slices"

	"github.com/bojanz/currency"
)

// notPaid are the codes of ISO 4217 that are active, and that no payment can have: units of account and funds, by which
// contracts are indexed or central banks settle. The list of [currency] has no metals, no bond units, and neither XTS nor XXX.
var notPaid = []string{
	"BOV", // Bolivia's Mvdol
	"CHE", // WIR euro
	"CHW", // WIR franc
	"CLF", // Chile's Unidad de Fomento
	"COU", // Colombia's Unidad de Valor Real
	"MXV", // Mexico's Unidad de Inversion
	"USN", // US dollar, next day
	"UYI", // Uruguay Peso en Unidades Indexadas
	"UYW", // Uruguay's Unidad Previsional
	"XAD", // Arab Accounting Dinar
}

// isCurrency says whether something can be paid in the currency of that ISO 4217 code: it is in use now.
func isCurrency(code string) bool {
	return code != "" && currency.IsValid(code) && !slices.Contains(notPaid, code)
}
