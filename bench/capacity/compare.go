package main

import (
	"math"
	"time"

	"github.com/idem-go/idem-aws/infra/spec"
)

// What the drift job does.
const (
	// driftRows is how many rows a second one piece of the drift job compares, and driftPasses how often each row is: four calls to
	// DynamoDB and one or two to the provider for a hundred rows, one after the other. Assumed. Each step lists the provider's objects
	// for driftLag beyond what it compares, and ends after driftStep.
	driftRows, driftPasses = spec.CompareRows, 3
	driftLag, driftStep    = 10 * time.Second, 4 * time.Minute
	// driftCalls are those of a hundred rows, and driftListings those of them that list.
	driftCalls, driftListings = 5.5, 1.5
	// driftSlower is by how many rows a second a piece compares less for each payment a second: a step of driftStep lists rate × driftLag
	// objects more, a hundred a call.
	driftSlower = driftListings / driftCalls * float64(driftLag) / float64(driftStep)
	// driftPartsMax is the most pieces that the stack takes (context driftParts).
	driftPartsMax = 240
	// compareReads are the read units of each of compareTables tables for a row that is compared, and compareIndexReads those of the
	// ledger's index, a share of a page. functions/cmd/ledgerbench has measured their sum.
	compareTables, compareReads, compareIndexReads = 3, 1, 0.011
)

// compared are the rows that are compared in a second, on average.
func (t Traffic) compared() float64 { return t.Rate * driftPasses }

// driftParts are the pieces at once that compare the rate at the utilisation, and driftRate the rate that so many carry, before it is
// multiplied by the utilisation.
func driftParts(t Traffic) float64 {
	rows := driftRows - driftSlower*t.Rate
	if rows <= 0 {
		return math.Inf(1)
	}
	return atLeastOne(t.compared() / rows / t.Utilisation)
}

func driftRate(t Traffic, parts float64) float64 {
	return parts * driftRows / (driftPasses + t.Utilisation*parts*driftSlower)
}

// pieces are how many a stack that is deployed for the rate compares at once: as many as are needed, and no fewer than by default.
func pieces(t Traffic, d Deployed) float64 {
	return max(float64(d.DriftParts), min(driftParts(t), driftPartsMax))
}

// compareBurst are the read units a second of each of the three tables while so many pieces compare, which is for a part of each hour.
func compareBurst(pieces float64) float64 { return pieces * driftRows * compareReads }

// driftFunction is the drift job's: its pieces run one step after the other.
func driftFunction(t Traffic, d Deployed) Function {
	most := pieces(t, d)
	running := most
	if rows := driftRows - driftSlower*t.Rate; rows > 0 {
		running = min(t.compared()/rows, most)
	}
	began := most * driftPasses / time.Hour.Seconds()
	return Function{
		Name: "drift", PerSecond: began + running/driftStep.Seconds(), Latency: driftStep.Seconds(), Concurrency: running, Planned: most,
		MemoryMiB: d.MemoryMiB["drift"],
	}
}

// driftRemedy says how many pieces compare the rate, or that the drift job doesn't carry it: more pieces than the stack takes are no remedy.
func driftRemedy(t Traffic) string {
	if parts := driftParts(t); parts <= driftPartsMax {
		return "deploy with driftParts=" + plain(parts)
	}
	most := math.Floor(driftRate(t, driftPartsMax) * t.Utilisation)
	return "none: it carries " + figure(most) + " at most, with driftParts=" + plain(driftPartsMax) + "; above, hours are compared late"
}
