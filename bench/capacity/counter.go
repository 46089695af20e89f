package main

import (
	"math"
	"time"
)

// What counting in the table of quota counters consumes (packages quota and dynamoquota).
const (
	// counterWrite is an addition, and counterRead a read, which may be a moment old.
	counterWrite, counterRead = 1, 0.5
	// rightsInBlock is how many rights a process takes at once of new keys and of look-ups: one, because it serves fewer than 16 requests
	// of a tenant in a second.
	rightsInBlock = 1
	// activeRereads is how often in an hour a process reads the counters of a tenant's active keys at most, while the limit isn't met.
	activeRereads = 12
	// lastBlock is how much of a block more a process asks for in an hour, because the last one is not used up.
	lastBlock = 0.6
	// tenantQuotaMax is the most that the stack takes for a quota of a tenant.
	tenantQuotaMax = 1e9
)

// ofNewKey and ofLookUp are what the quotas of a tenant cost for a new key and for a look-up.
func ofNewKey(t Traffic, d Deployed) Units {
	writes, reads := t.activeKeys(d)
	return Units{Counters: counterWrite/rightsInBlock + writes, Reads: reads}
}

func ofLookUp() Units { return Units{Counters: counterWrite / rightsInBlock} }

// activeKeys are the units of the counters of active keys, for each new key at the most. A process takes blocks of rights for each
// tenant, which it holds for an hour, and then brings back what is left. The blocks are at least a hundred-thousandth of the limit, and a
// quarter less on average, so that processes that began together do not ask together.
func (t Traffic) activeKeys(d Deployed) (writes, reads float64) {
	processes := max(1, t.requests()*t.API.Seconds()/t.Utilisation)
	perHour := t.Rate * time.Hour.Seconds() / processes / t.Tenants // new keys of a tenant at one process
	largest := max(1, math.Floor(d.ActiveKeys/100_000), math.Floor(min(perHour/60/8, d.ActiveKeys/20)))
	block := largest - math.Floor(largest/2)/2
	asked := min(1, 1/block+lastBlock/perHour)
	returned := min(1, 1/perHour)
	days := math.Floor(d.ActiveFor.Hours()/24) + 1
	return counterWrite * (asked + returned), counterRead * days * min(asked, activeRereads/perHour)
}

// tenantQuotas are the limits that the tenants' quotas set, where all tenants have as many payments.
func tenantQuotas(t Traffic, d Deployed) []Limit {
	var all []Limit
	add := func(context, what string, quota, perPayment float64) {
		if perPayment == 0 {
			return
		}
		remedy := "deploy with " + context + "=" + plain(tenantQuota(t, perPayment))
		if tenantQuota(t, perPayment) > tenantQuotaMax {
			remedy = "none: a tenant's quota is " + figure(tenantQuotaMax) + " at most; the payments must come from more tenants"
		}
		all = append(all, Limit{
			of: context, What: "quota of " + what + " " + figure(quota) + ", tenants " + figure(t.Tenants), Carries: quota * t.Tenants / perPayment,
			Remedy: remedy,
		})
	}
	add("quotaNewKeys", "new keys/s", d.NewKeys, 1)
	add("quotaLookUps", "look-ups/s", d.LookUps, t.Polls)
	add("quotaActiveKeys", "active keys", d.ActiveKeys, d.activeSeconds())
	return all
}

// tenantQuota is what one tenant's quota has to be, of something that each payment has so many of.
func tenantQuota(t Traffic, perPayment float64) float64 {
	return whole(t.Rate * perPayment / t.Tenants / t.Utilisation)
}

// activeSeconds are how long a key counts as active: an hour longer than it is remembered, because keys are counted by the hour.
func (d Deployed) activeSeconds() float64 { return (d.ActiveFor + time.Hour).Seconds() }

// raiseTenantQuotas raises the quotas that are too low, as far as the stack takes it.
func raiseTenantQuotas(t Traffic, d *Deployed, low func(...string) bool, contexts map[string]any) {
	raise := func(context string, perPayment float64, into *float64) {
		if low(context) {
			*into = min(tenantQuota(t, perPayment), tenantQuotaMax)
			contexts[context] = int(*into)
		}
	}
	raise("quotaNewKeys", 1, &d.NewKeys)
	raise("quotaLookUps", t.Polls, &d.LookUps)
	raise("quotaActiveKeys", d.activeSeconds(), &d.ActiveKeys)
}
