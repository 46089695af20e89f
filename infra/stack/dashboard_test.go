package stack_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// The dashboard shows metrics that are made: every one of ours has the functions' coordinates, and each graph has something.
func TestDashboard(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if variants[variant]["local"] != nil {
			template.counts(t, "AWS::CloudWatch::Dashboard", 0)
			return
		}
		got := template.only(t, "AWS::CloudWatch::Dashboard", "Dashboard").Properties
		if name := got["DashboardName"]; name != stackName(variant)+"-eu-central-1" {
			t.Errorf("name %v", name)
		}
		var body struct {
			Widgets []struct {
				Properties struct {
					Title   string
					Metrics [][]any
				}
			}
		}
		if err := json.Unmarshal([]byte(plain(got["DashboardBody"])), &body); err != nil {
			t.Fatal(err)
		}
		ours := map[string]bool{}
		for _, w := range body.Widgets {
			if len(w.Properties.Metrics) == 0 {
				t.Errorf("%s shows nothing", w.Properties.Title)
			}
			for _, m := range w.Properties.Metrics {
				switch namespace := fmt.Sprint(m[0]); {
				case namespace == metric.Namespace:
					ours[fmt.Sprint(m[1])] = true
					if m[2] != "service" || m[3] != stackName(variant) {
						t.Errorf("%s: %v", w.Properties.Title, m)
					}
				case !strings.HasPrefix(namespace, "AWS/") || len(m) < 4:
					t.Errorf("%s: %v", w.Properties.Title, m)
				}
			}
		}
		if len(body.Widgets) != 12 || !ours["outbox.backlog.due_age"] || !ours["sweep.run"] || !ours["outbox.dead"] {
			t.Errorf("%d graphs, ours %v", len(body.Widgets), ours)
		}
	})
}
