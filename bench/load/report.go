package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run measured.
type Report struct {
	Date    time.Time `json:"date"`
	Machine string    `json:"machine"`
	Parts   []Part    `json:"parts"`
}

// Part is one of the four measurements.
type Part struct {
	Name string `json:"name"`
	// Load is the machine's when the part began.
	Load    string   `json:"load"`
	Notes   []string `json:"notes,omitempty"`
	Figures []Figure `json:"figures"`
	// Wrong is what makes the run fail.
	Wrong []string `json:"wrong,omitempty"`
}

// Figure is what was measured of one path with so many callers. Latencies are in milliseconds.
type Figure struct {
	Side      string         `json:"side,omitempty"`
	Rows      int            `json:"rows,omitempty"`
	Path      string         `json:"path"`
	Callers   int            `json:"callers"`
	Requests  int            `json:"requests"`
	PerSecond float64        `json:"requests_per_second"`
	P50       float64        `json:"p50_ms"`
	P99       float64        `json:"p99_ms"`
	Cost      *Cost          `json:"cost,omitempty"`
	Errors    map[string]int `json:"errors,omitempty"`
}

// unexpected is what a part's figures have of errors, as lines of Wrong.
func unexpected(figures []Figure) (wrong []string) {
	for _, f := range figures {
		if len(f.Errors) > 0 {
			wrong = append(wrong, fmt.Sprintf("%s%s, c %d: unexpected answers: %s", prefix(f.Side), f.Path, f.Callers, f.errors()))
		}
	}
	return wrong
}

func prefix(side string) string {
	if side == "" {
		return ""
	}
	return side + ", "
}

// err is what was wrong in all parts; nil where nothing was.
func (r Report) err() error {
	var all []error
	for _, p := range r.Parts {
		for _, wrong := range p.Wrong {
			all = append(all, fmt.Errorf("%s: %s", p.Name, wrong))
		}
	}
	return errors.Join(all...)
}

func (r Report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r Report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "%s, %s\n", r.Date.Format("2006-01-02 15:04"), r.Machine)
	for _, p := range r.Parts {
		fmt.Fprintf(out, "\n%s; load %s\n", p.Name, p.Load)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  side\trows\tpath\tc\tn\treq/s\tp50 ms\tp99 ms\tW\tR\tcalls\terrors")
		for _, f := range p.Figures {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%.1f\t%.2f\t%.2f\t%s\t%s\n", dot(f.Side), dot(count(f.Rows)), f.Path, f.Callers, f.Requests,
				f.PerSecond, f.P50, f.P99, f.Cost.columns(), dot(f.errors()))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, note := range p.Notes {
			fmt.Fprintf(out, "  %s\n", note)
		}
		for _, wrong := range p.Wrong {
			fmt.Fprintf(out, "  WRONG: %s\n", wrong)
		}
	}
	return nil
}

func dot(text string) string {
	if text == "" {
		return "."
	}
	return text
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (f Figure) errors() string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(f.Errors)) {
		all = append(all, fmt.Sprintf("%d %s", f.Errors[code], code))
	}
	return strings.Join(all, ", ")
}
