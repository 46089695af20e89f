package console

import (
	"fmt"
	"slices"
	"time"
)

// picture is a timeline laid out for an SVG. Its columns are the moments, in order and evenly apart: an operation takes
// milliseconds, and waits for hours. The times between them are written above.
type picture struct {
	Width, Height int
	Lanes         []pictureLane
	Dots          []dot
	Lines         []line
	Gaps          []gap
	// NowX is where the present is; 0 where it is beyond what is drawn.
	NowX int
	// Base is where the columns end.
	Base int
}

type pictureLane struct {
	Name string
	Y    int
	// TextY is the base line of its name.
	TextY int
}

type dot struct {
	X, Y, TextY, N int
	Tone           tone
	Planned        bool
	Title          string
}

type line struct {
	X, Y, Width int
	Tone        tone
	Open        bool
	Title       string
}

type gap struct {
	X    int
	Text string
}

// The picture's measures, in pixels.
const (
	labelWidth   = 96
	columnMin    = 72
	columnMax    = 110
	columnsWidth = 880
	laneHeight   = 46
	headHeight   = 34
	barHeight    = 12
	dotRadius    = 12
	textDrop     = 5
	pictureRight = 40
)

// draw lays a timeline out. A mark's number is its place in the list below the picture.
func draw(t timeline) picture {
	moments := []time.Time{t.Now}
	for _, m := range t.Marks {
		moments = append(moments, m.At)
	}
	slices.SortFunc(moments, time.Time.Compare)
	moments = slices.CompactFunc(moments, time.Time.Equal)
	column := func(at time.Time) int {
		i, found := slices.BinarySearchFunc(moments, at, time.Time.Compare)
		if !found { // between two moments: only bars of what has no mark
			i = max(i-1, 0)
		}
		return i
	}
	columnWidth := min(max(columnsWidth/len(moments), columnMin), columnMax)
	x := func(i int) int { return labelWidth + columnWidth/2 + i*columnWidth }
	y := func(lane int) int { return headHeight + lane*laneHeight + laneHeight/2 }
	p := picture{
		Width: x(len(moments)-1) + pictureRight, Height: headHeight + len(t.Lanes)*laneHeight + textDrop, NowX: x(column(t.Now)),
		Base: headHeight + len(t.Lanes)*laneHeight,
	}
	for i, name := range t.Lanes {
		p.Lanes = append(p.Lanes, pictureLane{name, y(i), y(i) + textDrop})
	}
	for _, b := range t.Bars {
		from, to := x(column(b.From)), x(column(b.To))
		p.Lines = append(p.Lines, line{from, y(b.Lane) - barHeight/2, max(to-from, 2), b.Tone, b.Open, t.Lanes[b.Lane] + ": " + b.Title})
	}
	taken := map[[2]int]int{} // how many dots stand in a place already
	for i, m := range t.Marks {
		place := [2]int{column(m.At), m.Lane}
		shift := taken[place] * (2*dotRadius + 2)
		taken[place]++
		p.Dots = append(p.Dots, dot{x(place[0]) + shift, y(m.Lane), y(m.Lane) + textDrop, i + 1, m.Tone, m.Planned, m.Title})
	}
	for i := 1; i < len(moments); i++ {
		p.Gaps = append(p.Gaps, gap{x(i) - columnWidth/2, "+" + span(moments[i].Sub(moments[i-1]))})
	}
	return p
}

// span is a length of time as a person says it: two units at the most.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return units(d, time.Minute, "min", time.Second, "s")
	case d < day:
		return units(d, time.Hour, "h", time.Minute, "min")
	}
	return units(d, day, "d", time.Hour, "h")
}

func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}
