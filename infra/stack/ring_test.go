package stack_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"
	"testing"
)

// data are the values of metrics, period by period, as "1 - 0": "-" is a period without data. Expressions name their metrics; the
// one of an alarm without is "".
type data map[string]string

// rung says whether CloudWatch would ring the alarm at the end of the data: by its last periods, and by what it makes of those
// without data ("Evaluating an alarm", "Configuring how CloudWatch alarms treat missing data").
func (a alarmOf) rung(t *testing.T, d data) bool {
	t.Helper()
	breaching := 0
	for at := range a.EvaluationPeriods {
		value := a.at(t, d, at)
		breaches := value >= a.Threshold
		if a.ComparisonOperator == "LessThanThreshold" {
			breaches = value < a.Threshold
		}
		if math.IsNaN(value) {
			breaches = a.TreatMissingData == "breaching"
		}
		if breaches {
			breaching++
		}
	}
	return breaching >= a.DatapointsToAlarm
}

// at is the alarm's value in a period; NaN where there is none.
func (a alarmOf) at(t *testing.T, d data, period int) float64 {
	t.Helper()
	for name, values := range d {
		if n := len(strings.Fields(values)); n != a.EvaluationPeriods {
			t.Fatalf("%s: %d periods of %q, want %d", a.id, n, name, a.EvaluationPeriods)
		}
	}
	for _, term := range a.Metrics {
		if term.Expression != "" {
			expression, err := parser.ParseExpr(term.Expression)
			if err != nil {
				t.Fatal(err)
			}
			return calculation{t, a, d, period}.of(expression)
		}
	}
	return calculation{t, a, d, period}.of(ast.NewIdent(""))
}

// calculation is CloudWatch's metric math in one period, as far as our alarms use it.
type calculation struct {
	*testing.T
	alarm  alarmOf
	data   data
	period int
}

func (c calculation) of(e ast.Expr) float64 {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.of(e.X)
	case *ast.BasicLit:
		return c.number(e.Value)
	case *ast.Ident:
		values, ok := c.data[e.Name]
		if !ok || strings.Fields(values)[c.period] == "-" {
			return math.NaN()
		}
		return c.number(strings.Fields(values)[c.period])
	case *ast.CallExpr:
		return c.call(e)
	case *ast.BinaryExpr:
		return c.binary(e)
	}
	c.Fatalf("%s: %T in an expression", c.alarm.id, e)
	return 0
}

func (c calculation) number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		c.Fatal(err)
	}
	return n
}

func (c calculation) call(e *ast.CallExpr) float64 {
	value := c.of(e.Args[0])
	switch name := e.Fun.(*ast.Ident).Name; {
	case name == "FILL" && math.IsNaN(value):
		return c.of(e.Args[1])
	case name == "FILL", math.IsNaN(value):
		return value
	case name == "IF" && value != 0:
		return c.of(e.Args[1])
	case name == "IF":
		return c.of(e.Args[2])
	default:
		c.Fatalf("%s: function %s", c.alarm.id, name)
		return 0
	}
}

func (c calculation) binary(e *ast.BinaryExpr) float64 {
	x, y := c.of(e.X), c.of(e.Y)
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	case e.Op == token.ADD:
		return x + y
	case e.Op == token.MUL:
		return x * y
	case e.Op == token.QUO:
		return x / y
	case e.Op == token.GEQ && x >= y:
		return 1
	case e.Op == token.GEQ:
		return 0
	}
	c.Fatalf("%s: operator %s", c.alarm.id, e.Op)
	return 0
}

// Each alarm rings at what it is for, and not at what is next to it. Those that are not named here ring at one line.
func TestAlarmsRing(t *testing.T) {
	type series struct{ rings, quiet []data }
	one := func(rings, quiet string) series { return series{[]data{{"": rings}}, []data{{"": quiet}}} }
	runs := func(rings, quiet string) series { return series{[]data{{"runs": rings}}, []data{{"runs": quiet}}} }
	quarters := func(each ...string) (all []data) {
		for _, values := range each {
			all = append(all, data{"runs": values})
		}
		return all
	}
	cases := map[string]series{
		"KeyMisuse": {
			rings: []data{{"counted": "- 5", "all": "9 500"}},
			quiet: []data{{"counted": "4 4", "all": "4 4"}, {"counted": "500 500", "all": "3000000 3000000"}, {}},
		},
		"StoreError": {
			rings: []data{{"counted": "5 - 6", "all": "500 1 600"}, {"counted": "6000 6000 -", "all": "600000 600000 -"}},
			quiet: []data{{"counted": "- 99 -", "all": "- 99 -"}, {"counted": "4 4 4", "all": "4 4 4"}, {"counted": "5999 5999 5999", "all": "600000 600000 600000"}, {}},
		},
		// A new version that answers 503 to all of a tenth of the webhooks, and less than a hundredth of them.
		"WebhookFailed": {
			rings: []data{{"counted": "- 3", "all": "9 300"}, {"counted": "100 -", "all": "1000 -"}},
			quiet: []data{{"counted": "2 2", "all": "2 2"}, {"counted": "99 99", "all": "10000 10000"}, {}},
		},
		// Of four tables one is missing, or all. A copy counts for one of two vaults, and perhaps for both.
		"BackupSilent": {
			rings: []data{{"m0": "3"}, {"m0": "-"}},
			quiet: []data{{"m0": "4"}, {"m0": "5"}},
		},
		"BackupCopySilent": {
			rings: []data{{"m0": "3"}, {"m1": "3"}, {"m0": "3", "m1": "3"}, {}},
			quiet: []data{{"m0": "4"}, {"m1": "4"}, {"m0": "4", "m1": "4"}},
		},
		"BackupCopyFailed":   {rings: []data{{"m0": "1 -"}, {"m1": "- 1"}}, quiet: []data{{"m0": "0 0", "m1": "- 0"}, {}}},
		"BackupFailed":       {rings: []data{{"m0": "1 -"}, {"m1": "- 1"}, {"m2": "- 1"}}, quiet: []data{{"m0": "0 0", "m1": "- 0"}, {}}},
		"StoreRefused":       one("- 3", "2 2"),
		"OutboxUnauthorized": one("10 - 12", "9 12 9"),
		// A provider that restarts at a period's end, and one message that waits for a quarter of an hour.
		"OutboxUnsent": {rings: []data{{"": "5 - 5 6"}}, quiet: []data{{"": "- 900 900 -"}, {"": "4 5 5 4"}}},
		"ReleaseHarm":  {rings: []data{{"m0": "- - 1 - -"}, {"m7": "1 - - - -"}}, quiet: []data{{"m0": "0 0 0 0 0"}, {}}},
		"ReleaseErrors": {
			rings: []data{{"failures": "3 -", "all": "60 -"}},
			quiet: []data{{"failures": "2 2", "all": "2 2"}, {"failures": "49 49", "all": "1000 1000"}, {}},
		},
		// A tenth of the calls of ten minutes: one of each shard a minute.
		"ReleaseErrorsSweep": {
			rings: []data{{"failures": "1 -", "all": "1 -"}, {"failures": "- 1", "all": "8 20"}},
			quiet: []data{{"failures": "0 0", "all": "1 1"}, {"failures": "1 1", "all": "21 21"}, {}},
		},
		"ReleaseErrorsReconcile": {
			rings: []data{{"failures": "1 -", "all": "1 -"}, {"failures": "- 1", "all": "8 20"}},
			quiet: []data{{"failures": "0 0", "all": "1 1"}, {"failures": "1 1", "all": "21 21"}, {}},
		},
		"DriftFound":       one("1 -", "- -"),
		"DriftFailed":      one("1 -", "- -"),
		"DriftLate":        one("1 -", "- -"),
		"DriftPiecesOld":   one("7200 0 7200", "7199 7199 7199"),
		"DriftDeadLetters": one("- 1 1", "0 1 0"),
		"DeadLetters":      one("- 1 1", "0 1 0"),
		"DeadLettersOld":   one("604800 604860 604920", "604798 604799 604799"),
		"WakeUpsLate":      one("1261 0 1261", "1259 1259 1259"),
		"SweepSilent":      {rings: quarters("- -", "0 112"), quiet: quarters("- 233", "233 -")},
		// One of eight shards has no run, and ends come later; then all have (of 16), and ends come later in one quarter only.
		"ReconcileSilent": {rings: quarters("105 105", "98 112", "112 105"), quiet: quarters("240 240", "112 256", "256 112")},
		"DriftSilent":     runs("- - -", "- 1 -"),
		"DueOld":          one("600000 - 600000 0 600000", "600000 599999 600000 - -"),
		"UnknownOld":      one("- 7200000", "7199999 -"),
		"StreamLate":      one("300000 - 300000", "- 900000 -"),
		"GatewayErrors": {
			rings: []data{{"failures": "- 3", "all": "9 60"}, {"failures": "900 -", "all": "900 -"}},
			quiet: []data{{"failures": "2 2", "all": "2 2"}, {"failures": "3 -", "all": "61 61"}, {}},
		},
		"GatewaySlow": {
			rings: []data{{"requests": "20 20 20", "latency": "10000 9000 10000"}},
			quiet: []data{{"requests": "19 19 19", "latency": "29000 29000 29000"}, {"requests": "99 99 99", "latency": "29000 9999 9999"}, {}},
		},
		"FunctionErrors": {
			rings: []data{{"failures": "3 -", "all": "60 -"}},
			quiet: []data{{"failures": "2 2", "all": "2 2"}, {"failures": "49 49", "all": "1000 1000"}, {}},
		},
		"FunctionThrottled": {
			rings: []data{{"throttled": "- 3", "invoked": "- -"}, {"throttled": "5 -", "invoked": "95 -"}},
			quiet: []data{{"throttled": "2 2", "invoked": "0 0"}, {"throttled": "5 5", "invoked": "96 96"}, {}},
		},
		"FunctionErrorsDrift": {
			rings: []data{{"failures": "1 -", "all": "1 1"}},
			quiet: []data{{"failures": "0 0", "all": "1 1"}, {}},
		},
		"FunctionThrottledDrift": {
			rings: []data{{"throttled": "- 1", "invoked": "1 -"}},
			quiet: []data{{"throttled": "0 0", "invoked": "1 1"}, {}},
		},
		"TableThrottled": {
			rings: []data{{"m0": "- 10"}, {"m0": "- 5", "m1": "- 5"}},
			quiet: []data{{"m0": "5 4", "m1": "4 5"}, {}},
		},
		"SchedulesFail": {rings: []data{{"m0": "1 -"}, {"m2": "- 1"}}, quiet: []data{{"m1": "0 0"}, {}}},
	}
	line, used := one("- - 1 - -", "- - - - -"), map[string]bool{}
	for _, variant := range []string{"http-gateway", "rest-gateway"} {
		for id, a := range synthesize(t, variant).alarms(t) {
			name := a.runbook
			if _, ok := cases[id]; ok {
				name = id
			}
			c, ok := cases[name]
			if !ok {
				c = line
			}
			used[name] = true
			for _, d := range c.rings {
				if !a.rung(t, d) {
					t.Errorf("%s stays quiet at %v", id, d)
				}
			}
			for _, d := range c.quiet {
				if a.rung(t, d) {
					t.Errorf("%s rings at %v", id, d)
				}
			}
		}
	}
	for id := range cases {
		if !used[id] {
			t.Errorf("there is no alarm %s", id)
		}
	}
}
