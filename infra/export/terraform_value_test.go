package export_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// given are the module's variables that have defaults.
type given map[string]cty.Value

func byDefault() given { return with(8, nil, nil) }

// with are the defaults but for these.
func with(shards int64, concurrency map[string]int64, environment map[string]string) given {
	reserved, own := cty.MapValEmpty(cty.Number), cty.MapValEmpty(cty.String)
	if concurrency != nil {
		values := map[string]cty.Value{}
		for name, value := range concurrency {
			values[name] = cty.NumberIntVal(value)
		}
		reserved = cty.MapVal(values)
	}
	if environment != nil {
		values := map[string]cty.Value{}
		for name, value := range environment {
			values[name] = cty.StringVal(value)
		}
		own = cty.MapVal(values)
	}
	return given{"name": cty.StringVal("shop"), "shards": cty.NumberIntVal(shards), "concurrency": reserved, "environment": own}
}

// functions are those of Terraform that the module's expressions call; alltrue is Terraform's own.
var functions = map[string]function.Function{
	"range": stdlib.RangeFunc, "jsonencode": stdlib.JSONEncodeFunc, "lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc,
	"floor": stdlib.FloorFunc, "min": stdlib.MinFunc, "tostring": stdlib.MakeToFunc(cty.String), "contains": stdlib.ContainsFunc,
	"alltrue": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}}, Type: function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for it := args[0].ElementIterator(); it.Next(); {
				if _, v := it.Element(); v.False() {
					return cty.False, nil
				}
			}
			return cty.True, nil
		},
	}),
}

// value is what HashiCorp's language makes of a string of the file. A resource's attribute is its name.
func (m terraform) value(text any, variables given) cty.Value {
	m.t.Helper()
	expression, diagnostics := hclsyntax.ParseTemplate([]byte(str(text)), "main.tf.json", hcl.InitialPos)
	if diagnostics.HasErrors() {
		m.t.Fatal(diagnostics)
	}
	named := map[string]map[string]map[string]cty.Value{}
	for _, traversal := range expression.Variables() {
		if root := traversal.RootName(); root != "var" && len(traversal) == 3 {
			resource, attribute := traversal[1].(hcl.TraverseAttr).Name, traversal[2].(hcl.TraverseAttr).Name
			if named[root] == nil {
				named[root] = map[string]map[string]cty.Value{}
			}
			if named[root][resource] == nil {
				named[root][resource] = map[string]cty.Value{}
			}
			named[root][resource][attribute] = cty.StringVal(resource)
		}
	}
	all := map[string]cty.Value{"var": cty.ObjectVal(variables)}
	for root, resources := range named {
		objects := map[string]cty.Value{}
		for name, attributes := range resources {
			objects[name] = cty.ObjectVal(attributes)
		}
		all[root] = cty.ObjectVal(objects)
	}
	value, diagnostics := expression.Value(&hcl.EvalContext{Variables: all, Functions: functions})
	if diagnostics.HasErrors() {
		m.t.Fatalf("%v: %v", text, diagnostics)
	}
	return value
}

// Whatever the number of shards, the runs of each function look into each of them, once a minute.
func TestTerraformSchedulesFollowTheShards(t *testing.T) {
	_, document := terraformFile(t)
	m := terraform{t, document}
	for _, shards := range []int64{8, 9, 20, 256} {
		seen := map[string][]int{}
		for _, p := range m.all("aws_cloudwatch_event_target") {
			role := owner(at(p, "arn"))
			seen[role] = append(seen[role], shardsOf(t, m.value(at(p, "input"), with(shards, nil, nil)).AsString())...)
		}
		eachOnce(t, fmt.Sprint(shards), int(shards), seen)
	}
}

// What the module needs wins over a variable of the caller's, and the caller's others are there.
func TestTerraformsOwnVariablesWin(t *testing.T) {
	_, document := terraformFile(t)
	m := terraform{t, document}
	theirs := map[string]string{"OUTBOX_SHARDS": "1", "IDEMPOTENCY_TABLE": "theirs", "ORDERS_TABLE": "orders"}
	for role, p := range m.all("aws_lambda_function") {
		variables := m.value(at(p, "environment.variables"), with(16, nil, theirs)).AsValueMap()
		for name, want := range map[string]string{"OUTBOX_SHARDS": "16", "IDEMPOTENCY_TABLE": "idempotency", "ORDERS_TABLE": "orders"} {
			if got := variables[name].AsString(); got != want {
				t.Errorf("%s: %s is %q, want %q", role, name, got, want)
			}
		}
	}
}

// Nothing is reserved by default, and what is chosen is the function's alone.
func TestTerraformReservesWhatIsChosen(t *testing.T) {
	_, document := terraformFile(t)
	m := terraform{t, document}
	for role, p := range m.all("aws_lambda_function") {
		for _, c := range []struct {
			chosen map[string]int64
			want   int64
		}{{nil, -1}, {map[string]int64{"worker": 60, "sweep": 0}, map[string]int64{"worker": 60, "sweep": 0, "api": -1, "reconcile": -1}[role]}} {
			got := m.value(at(p, "reserved_concurrent_executions"), with(8, c.chosen, nil))
			if got.AsBigFloat().Cmp(big.NewFloat(float64(c.want))) != 0 {
				t.Errorf("%s has %s reserved with %v, want %d", role, got.GoString(), c.chosen, c.want)
			}
		}
	}
}

// Where executions are reserved for the worker, wake-ups have what the stream leaves, as with the CDK.
func TestTerraformLeavesWakeUpsWhatTheStreamDoes(t *testing.T) {
	_, document := terraformFile(t)
	m := terraform{t, document}
	scaling := at(m.all("aws_lambda_event_source_mapping")["wake_ups"], "dynamic.scaling_config")
	for _, c := range []struct {
		chosen map[string]int64
		want   int64
	}{{nil, 0}, {map[string]int64{"worker": -1}, 0}, {map[string]int64{"worker": 0, "api": 9}, 0}, {map[string]int64{"worker": 60}, 10}, {map[string]int64{"worker": 3000}, 1000}} {
		given, most := with(8, c.chosen, nil), int64(0)
		if m.value(at(scaling, "for_each"), given).LengthInt() == 1 {
			most, _ = m.value(at(scaling, "content.maximum_concurrency"), given).AsBigFloat().Int64()
		}
		if most != c.want {
			t.Errorf("%v: %d workers take wake-ups, want %d", c.chosen, most, c.want)
		}
	}
}

// A number of shards that would leave some unswept, and a function that is not there, are refused before anything is planned.
func TestTerraformRefusesWhatItCannotDeploy(t *testing.T) {
	_, document := terraformFile(t)
	m := terraform{t, document}
	for name, c := range map[string]struct {
		variable string
		given    given
		want     bool
	}{
		"the default":            {"shards", byDefault(), true},
		"the most":               {"shards", with(256, nil, nil), true},
		"fewer than the runs":    {"shards", with(7, nil, nil), false},
		"more than the store's":  {"shards", with(257, nil, nil), false},
		"half a shard":           {"shards", given{"shards": cty.NumberFloatVal(8.5)}, false},
		"nothing reserved":       {"concurrency", byDefault(), true},
		"some reserved":          {"concurrency", with(8, map[string]int64{"worker": 60}, nil), true},
		"the least of a worker":  {"concurrency", with(8, map[string]int64{"worker": 52}, nil), true},
		"a stopped worker":       {"concurrency", with(8, map[string]int64{"worker": 0}, nil), true},
		"no wake-ups left":       {"concurrency", with(8, map[string]int64{"worker": 51}, nil), false},
		"runs of a minute":       {"concurrency", with(8, map[string]int64{"sweep": 8, "reconcile": 8}, nil), true},
		"a stopped sweep":        {"concurrency", with(8, map[string]int64{"sweep": 0, "reconcile": -1}, nil), true},
		"runs of a sweep":        {"concurrency", with(8, map[string]int64{"sweep": 7}, nil), false},
		"runs of a reconciler":   {"concurrency", with(8, map[string]int64{"reconcile": 1}, nil), false},
		"a misspelt function":    {"concurrency", with(8, map[string]int64{"wroker": 60}, nil), false},
		"a negative concurrency": {"concurrency", with(8, map[string]int64{"worker": -2}, nil), false},
		"half an execution":      {"concurrency", given{"concurrency": cty.MapVal(map[string]cty.Value{"api": cty.NumberFloatVal(0.5)})}, false},
	} {
		got, err := convert.Convert(m.value(at(document, "variable."+c.variable+".validation.condition"), c.given), cty.Bool)
		if err != nil || got.True() != c.want {
			t.Errorf("%s: accepted %v, %v, want %t", name, got.GoString(), err, c.want)
		}
	}
}

// eachOnce demands that every function's runs look into all shards, each once.
func eachOnce(t *testing.T, what string, shards int, seen map[string][]int) {
	t.Helper()
	if len(seen) != 2 {
		t.Fatalf("%s: functions %v are called by schedule, want two", what, seen)
	}
	for role, own := range seen {
		slices.Sort(own)
		for n := range own {
			if own[n] != n || len(own) != shards {
				t.Fatalf("%s: %s looks into %v, want each of %d shards once", what, role, own, shards)
			}
		}
	}
}
