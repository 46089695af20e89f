package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is a text of the checkout that has figures.
type source struct{ name, text string }

func open(root string, name ...string) (source, error) {
	file := filepath.Join(name...)
	text, err := os.ReadFile(filepath.Join(root, file))
	return source{file, string(text)}, err
}

// newest is the newest dated result that has the text.
func newest(root, having string) (source, error) {
	results, err := filepath.Glob(filepath.Join(root, "bench", "results", "*.md"))
	if err != nil {
		return source{}, err
	}
	slices.Sort(results)
	for _, file := range slices.Backward(results) {
		found, err := open(root, "bench", "results", filepath.Base(file))
		if err != nil || strings.Contains(found.text, having) {
			return found, err
		}
	}
	return source{}, fmt.Errorf("no result has %q", having)
}

// after is what follows the heading, up to the end that is given.
func (s source) after(heading, end string) (source, error) {
	_, rest, found := strings.Cut(s.text, heading)
	if !found {
		return source{}, fmt.Errorf("%s has no %q", s.name, heading)
	}
	part, _, _ := strings.Cut(rest, end)
	return source{s.name + ", " + strings.TrimSpace(heading), part}, nil
}

// cells are the rows of the first Markdown table, without its head.
func (s source) cells() ([][]string, error) {
	var rows [][]string
	for line := range strings.Lines(s.text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		var row []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	if len(rows) < 3 {
		return nil, fmt.Errorf("%s has no table", s.name)
	}
	return rows[2:], nil
}

var spaces = regexp.MustCompile(` {2,}`)

// columns are the rows of a table whose columns are at least two spaces apart.
func (s source) columns() [][]string {
	var rows [][]string
	for line := range strings.Lines(s.text) {
		rows = append(rows, spaces.Split(strings.TrimSpace(line), -1))
	}
	return rows
}

// row is the one row that begins with the cells.
func (s source) row(rows [][]string, cells ...string) ([]string, error) {
	var found [][]string
	for _, row := range rows {
		if len(row) > len(cells) && slices.Equal(row[:len(cells)], cells) {
			found = append(found, row)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s has %d rows %q, want one", s.name, len(found), cells)
	}
	return found[0], nil
}

var unit = regexp.MustCompile(` (µs|ms|rows/s)$`)

// number reads a cell: "." is nothing, and thousands may have commas.
func (s source) number(row []string, column int) (float64, error) {
	if column >= len(row) {
		return 0, fmt.Errorf("%s: the row %q has no column %d", s.name, row, column)
	}
	cell := strings.ReplaceAll(unit.ReplaceAllString(row[column], ""), ",", "")
	if cell == "." {
		return 0, nil
	}
	value, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: column %d of %q is no number", s.name, column, row)
	}
	return value, nil
}
