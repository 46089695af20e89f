package tenants

import (
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/quota"
)

func TestThePageShowsTenants(t *testing.T) {
	page := check.NewPage(t, "tenants.md")
	w := check.NewWorld(t)
	engine := check.Get(NewEngine(w.Store, quota.NewMemory(w.Clock.Now), idem.Config{Now: w.Clock.Now, Pause: w.Clock.Pause}))(t)
	service := Authorize(map[string]string{"Bearer a": "customer-a", "Bearer b": "customer-b", "Bearer l": "customer-large"},
		check.Get(NewService(engine))(t))

	page.Send("a", service, "POST", "/orders", "order-17", `{}`, "Authorization", "Bearer a").Want(t, 201, "executed")
	page.Send("b", service, "POST", "/orders", "order-17", `{}`, "Authorization", "Bearer b").Want(t, 201, "executed")

	send := func(name string, n int) check.Answer {
		return page.Send(name, service, "POST", "/orders", fmt.Sprintf("order-%d", n), `{}`, "Authorization", "Bearer a")
	}
	quiet := func(token, key string) check.Answer {
		return check.Send(t, service, "POST", "/orders", key, `{}`, "Authorization", token)
	}
	quiet("Bearer a", "order-18").Want(t, 201, "executed")
	send("over", 19).Want(t, 429, "")
	quiet("Bearer a", "order-17").Want(t, 201, "replayed") // a replay is never refused
	quiet("Bearer b", "order-18").Want(t, 201, "executed") // another tenant has limits of its own
	for n := range 50 {
		quiet("Bearer l", fmt.Sprintf("large-%d", n)).Want(t, 201, "executed")
	}
	w.Clock.Advance(2 * time.Second)
	quiet("Bearer a", "order-19").Want(t, 201, "executed")
	quiet("Bearer nobody", "order-17").Want(t, 401, "")
}
