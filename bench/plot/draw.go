package main

import (
	"fmt"
	"strings"
)

// Draw draws every picture from the figures of the checkout at root: the name of its file, and what it has.
func Draw(root string) (map[string][]byte, error) {
	pictures := map[string][]byte{}
	for _, of := range []struct {
		name string
		draw func(root string) ([]byte, error)
	}{
		{"cpu.svg", drawCPU}, {"latency.svg", drawLatency}, {"beside.svg", drawBeside}, {"kinds.svg", drawKinds},
		{"growth.svg", drawGrowth}, {"month.svg", drawMonth}, {"ledger.svg", drawLedger},
	} {
		svg, err := of.draw(root)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		pictures[of.name] = svg
	}
	return pictures, nil
}

// drawCPU shows idem beside the same calls by hand, one request at a time.
func drawCPU(root string) ([]byte, error) {
	paths := []string{"wrapped", "atomic", "optimistic", "replay by failed put", "replay by read"}
	readme, err := open(root, "bench", "README.md")
	if err != nil {
		return nil, err
	}
	table, err := readme.after("\n## Overhead\n", "\n## ")
	if err != nil {
		return nil, err
	}
	rows, err := table.cells()
	if err != nil {
		return nil, err
	}
	idem, hand := series{name: "idem"}, series{name: "the same calls by hand"}
	for _, path := range paths {
		row, err := table.row(rows, path, "1")
		if err != nil {
			return nil, err
		}
		for column, s := range map[int]*series{2: &idem, 3: &hand} {
			value, err := table.number(row, column)
			if err != nil {
				return nil, err
			}
			s.values = append(s.values, value)
		}
	}
	var categories []string
	for _, path := range paths {
		categories = append(categories, strings.Replace(path, " by ", "\nby ", 1))
	}
	return bars("CPU time of a request", "µs", categories, idem, hand)
}

// sides of the part "beside" of a load result, as the result and the picture call them.
var sides = []struct{ side, name string }{
	{"idem, atomic", "idem, atomic"}, {"atomic's calls by hand", "its calls by hand"}, {"idem, wrapped", "idem, wrapped"},
	{"wrapped's calls by hand", "its calls by hand, wrapped"}, {"Powertools", "Powertools (TypeScript)"},
}

// The columns of a load result, from 0.
const (
	columnMedian = 6
	columnWrites = 8
	columnReads  = 9
	columnCalls  = 10
)

func loadResult(root, part string) (source, [][]string, error) {
	result, err := newest(root, "\n"+part+": ")
	if err != nil {
		return source{}, nil, err
	}
	table, err := result.after("\n"+part+": ", "\n```")
	return table, table.columns(), err
}

// drawLatency shows the medians of one caller.
func drawLatency(root string) ([]byte, error) {
	table, rows, err := loadResult(root, "beside")
	if err != nil {
		return nil, err
	}
	var all []series
	for _, of := range sides {
		s := series{name: of.name}
		for _, path := range []string{"first", "replay"} {
			row, err := table.row(rows, of.side, ".", path, "1")
			if err != nil {
				return nil, err
			}
			value, err := table.number(row, columnMedian)
			if err != nil {
				return nil, err
			}
			s.values = append(s.values, value)
		}
		all = append(all, s)
	}
	return bars("Median time of a request, one caller", "ms", []string{"first request", "replay"}, all...)
}

// drawBeside shows what a request costs at DynamoDB. The calls by hand are idem's, so they are left out.
func drawBeside(root string) ([]byte, error) {
	table, rows, err := loadResult(root, "beside")
	if err != nil {
		return nil, err
	}
	var all []series
	for _, of := range sides {
		if strings.Contains(of.side, "by hand") {
			continue
		}
		s := series{name: of.name}
		for _, path := range []string{"first", "replay"} {
			row, err := table.row(rows, of.side, ".", path, "1")
			if err != nil {
				return nil, err
			}
			writes, err := table.number(row, columnWrites)
			if err != nil {
				return nil, err
			}
			if reads, err := table.number(row, columnReads); err != nil || reads != 0 {
				return nil, fmt.Errorf("%s reads, which the picture does not show (%v)", of.side, err)
			}
			s.values = append(s.values, writes, float64(1+strings.Count(row[columnCalls], ", ")))
		}
		all = append(all, s)
	}
	return bars("A request at DynamoDB, with one small business row", "",
		[]string{"first: write units", "first: round trips", "replay: write units", "replay: round trips"}, all...)
}

// drawKinds shows the write units of each kind of operation.
func drawKinds(root string) ([]byte, error) {
	golden, err := open(root, "bench", "cost", "testdata", "dynoxide.txt")
	if err != nil {
		return nil, err
	}
	kinds := []struct{ section, name, delivery string }{
		{"atomic", "atomic", ""}, {"optimistic", "optimistic", ""}, {"deferred", "deferred", "delivery, by stream"},
		{"inline", "deferred,\ninline first", ""}, {"wrapped", "wrapped", ""},
	}
	var names []string
	first, delivery, replay := series{name: "first request"}, series{name: "delivery by the worker"}, series{name: "replay"}
	for _, kind := range kinds {
		table, err := golden.after("\n"+kind.section+", 300 B of JSON ", "\n\n")
		if err != nil {
			return nil, err
		}
		rows := table.columns()
		for path, s := range map[string]*series{"first": &first, "replay": &replay, kind.delivery: &delivery} {
			value := 0.0
			if path != "" {
				row, err := table.row(rows, path)
				if err != nil {
					return nil, err
				}
				if value, err = table.number(row, 5); err != nil {
					return nil, err
				}
			}
			s.values = append(s.values, value)
		}
		names = append(names, kind.name)
	}
	return bars("Write units by kind of operation, answer of 300 bytes", "write units", names, first, delivery, replay)
}

// drawGrowth shows that the time of a request does not follow the size of the table.
func drawGrowth(root string) ([]byte, error) {
	table, rows, err := loadResult(root, "growth")
	if err != nil {
		return nil, err
	}
	first, replay := series{name: "first request"}, series{name: "replay"}
	at := []float64{10_000, 100_000, 1_000_000}
	for _, records := range at {
		for path, s := range map[string]*series{"first": &first, "replay": &replay} {
			row, err := table.row(rows, ".", fmt.Sprint(int(records)), path, "1")
			if err != nil {
				return nil, err
			}
			value, err := table.number(row, columnMedian)
			if err != nil {
				return nil, err
			}
			s.values = append(s.values, value)
		}
	}
	return curves("Median time by the size of the table, one caller", "records in the table", "ms", at, false, first, replay)
}

// drawMonth shows what a rate of payments costs at list prices.
func drawMonth(root string) ([]byte, error) {
	onDemand, provisioned := series{name: "tables on demand"}, series{name: "tables provisioned, used to 70 %"}
	rates := []float64{100, 1_000, 10_000}
	for _, rate := range rates {
		golden, err := open(root, "bench", "capacity", "testdata", fmt.Sprintf("%g.txt", rate))
		if err != nil {
			return nil, err
		}
		for _, of := range []struct {
			heading, sum string
			column       int
			to           *series
		}{
			{"\nA month at this rate", "all; without storage, alarms, KMS and traffic", 1, &onDemand},
			{"\nThe same with provisioned tables", "all", 1, &provisioned},
		} {
			table, err := golden.after(of.heading, "\n\n")
			if err != nil {
				return nil, err
			}
			row, err := table.row(table.columns(), of.sum)
			if err != nil {
				return nil, err
			}
			value, err := table.number(row, of.column)
			if err != nil {
				return nil, err
			}
			of.to.values = append(of.to.values, value)
		}
	}
	return curves("A month of the payments application, by its rate", "payments per second", "$ a month", rates, true, onDemand, provisioned)
}

// drawLedger shows how fast the drift job compares an hour.
func drawLedger(root string) ([]byte, error) {
	readme, err := open(root, "bench", "README.md")
	if err != nil {
		return nil, err
	}
	table, err := readme.after("\n## An hour of the ledger\n", "\n## ")
	if err != nil {
		return nil, err
	}
	rows, err := table.cells()
	if err != nil {
		return nil, err
	}
	var at []string
	rate := series{name: "rows compared in a second"}
	for _, row := range rows {
		value, err := table.number(row, 3)
		if err != nil {
			return nil, err
		}
		_, load, _ := strings.Cut(row[1], ", ")
		at = append(at, row[0]+" rows\nload "+load)
		rate.values = append(rate.values, value)
	}
	return bars("The drift job, by the rows of the hour", "rows a second", at, rate)
}
