package payments

import (
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// The business answers of the application. Each is stored and replayed like any result.

func paymentDeclined(o outbox.Outcome) idem.Problem {
	detail := "The payment source declined the charge."
	if refusedData(o) {
		detail = "The provider refused the payment's data. Nothing was charged."
	}
	return idem.NewProblem(http.StatusPaymentRequired, "payment_declined", "Payment declined", detail)
}

func paymentNotRefundable() idem.Problem {
	return idem.NewProblem(http.StatusPaymentRequired, "payment_not_refundable", "Payment not refundable",
		"Only a payment that has succeeded can be refunded.")
}

func refundExceedsPayment() idem.Problem {
	return idem.NewProblem(http.StatusPaymentRequired, "refund_exceeds_payment", "Refund exceeds payment",
		"The payment has less left to refund than the amount.")
}

func refundDeclined(o outbox.Outcome) idem.Problem {
	detail := "The provider declined the refund."
	if refusedData(o) {
		detail = "The provider refused the refund's amount. Nothing was refunded."
	}
	return idem.NewProblem(http.StatusPaymentRequired, "refund_declined", "Refund declined", detail)
}

func screeningDeclined(o outbox.Outcome) idem.Problem {
	if refusedData(o) {
		return payoutDeclined("The provider refused the payout's data. The funds are back on the account.")
	}
	return payoutDeclined("The destination did not pass the screening. The funds are back on the account.")
}

func payoutDeclined(detail string) idem.Problem {
	return idem.NewProblem(http.StatusPaymentRequired, "payout_declined", "Payout declined", detail)
}

// payoutNotMade is the answer to a payout that could not be made, once its screening's hold is released.
func payoutNotMade() idem.Problem {
	return idem.NewProblem(http.StatusBadGateway, "provider_unavailable", "Provider Unavailable",
		"The screening was executed and its hold released; the payout was not executed.")
}

func insufficientFunds() idem.Problem {
	return idem.NewProblem(http.StatusPaymentRequired, "insufficient_funds", "Insufficient funds",
		"The account does not hold the amount.")
}

func accountNotFound(member string) idem.Problem {
	return idem.NewProblem(http.StatusNotFound, "account_not_found",
		"Account not found", fmt.Sprintf("There is no account as named by %q.", member))
}

func currencyMismatch(member string) idem.Problem {
	return idem.NewProblem(http.StatusBadRequest, "currency_mismatch",
		"Currency mismatch", fmt.Sprintf("The account named by %q holds another currency.", member))
}

func notFound(what string) idem.Problem {
	return idem.NewProblem(http.StatusNotFound, what+"_not_found", "Not Found", "There is no such "+what+".")
}

func reject(p idem.Problem) error { return &idem.RejectedError{Problem: p} }
