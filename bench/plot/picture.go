package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Every picture has this size, and paper of its own: so it is read on a light page as on a dark one.
const (
	width  = 7.2 * vg.Inch
	height = 3.6 * vg.Inch
	margin = 4 * vg.Millimeter
)

var (
	paper = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink   = color.NRGBA{0x1f, 0x29, 0x33, 0xff}
	lines = color.NRGBA{0xd5, 0xda, 0xe1, 0xff}
	// palette is told apart by everybody: colours of Okabe and Ito, dark enough on white.
	palette = []color.Color{
		color.NRGBA{0x00, 0x5a, 0x9c, 0xff}, color.NRGBA{0x8f, 0xbf, 0xe0, 0xff}, color.NRGBA{0x00, 0x7a, 0x5a, 0xff},
		color.NRGBA{0x8a, 0xd0, 0xb4, 0xff}, color.NRGBA{0xc0, 0x4b, 0x00, 0xff},
	}
)

// series is a row of figures, one for each category.
type series struct {
	name   string
	values []float64
}

// picture is an empty one with its words.
func picture(title, y string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.BackgroundColor = paper
	p.Title.Text, p.Y.Label.Text = title, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = 13, 10
	// On the left of its area the legend has its texts behind its signs, where a wider font of the reader has room.
	p.Legend.Top, p.Legend.Left, p.Legend.TextStyle.Font.Size, p.Legend.Padding = true, true, 10, 3
	p.Legend.ThumbnailWidth = 12
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color, axis.Label.TextStyle.Color, axis.Tick.Label.Color = ink, ink, ink, ink
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = 11, 10
	}
	p.Title.TextStyle.Color, p.Legend.TextStyle.Color = ink, ink
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Transparent, lines
	p.Add(grid)
	return p
}

// bars draws a group of bars for each category, with its figure above each bar.
func bars(title, y string, categories []string, all ...series) ([]byte, error) {
	p := picture(title, y)
	barWidth := min(26, vg.Length(330/float64(len(categories)*len(all))))
	highest := 0.0
	for i, s := range all {
		if len(s.values) != len(categories) {
			return nil, fmt.Errorf("%s: %s has %d figures for %d categories", title, s.name, len(s.values), len(categories))
		}
		chart, err := plotter.NewBarChart(plotter.Values(s.values), barWidth)
		if err != nil {
			return nil, err
		}
		chart.Offset = barWidth * vg.Length(float64(i)-float64(len(all)-1)/2)
		chart.Color, chart.LineStyle.Width = palette[i], 0
		p.Add(chart)
		if len(all) > 1 {
			p.Legend.Add(s.name, chart)
		}
		points := plotter.XYLabels{}
		for x, value := range s.values {
			if value == 0 {
				continue // no bar
			}
			points.XYs = append(points.XYs, plotter.XY{X: float64(x), Y: value})
			points.Labels = append(points.Labels, figure(value))
			highest = max(highest, value)
		}
		if err := labels(p, points, vg.Point{X: chart.Offset, Y: 3}); err != nil {
			return nil, err
		}
	}
	p.NominalX(categories...)
	p.X.LineStyle.Width = 0.5
	p.X.Min, p.X.Max = -0.6, float64(len(categories))-0.4
	p.Legend.XOffs = width - 3.2*vg.Inch
	p.Y.Min, p.Y.Max = 0, highest*(1.15+0.09*float64(len(all))) // room for the legend
	return svg(p)
}

// curves draws a line for each series over the numbers of the x axis, whose scale is logarithmic.
func curves(title, x, y string, at []float64, logarithmic bool, all ...series) ([]byte, error) {
	p := picture(title, y)
	p.X.Label.Text = x
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks(at)
	lowest, highest := math.Inf(1), 0.0
	for i, s := range all {
		if len(s.values) != len(at) {
			return nil, fmt.Errorf("%s: %s has %d figures for %d places", title, s.name, len(s.values), len(at))
		}
		points := plotter.XYLabels{}
		for j, value := range s.values {
			points.XYs = append(points.XYs, plotter.XY{X: at[j], Y: value})
			points.Labels = append(points.Labels, figure(value))
			lowest, highest = min(lowest, value), max(highest, value)
		}
		line, dots, err := plotter.NewLinePoints(points.XYs)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, dots.Color, dots.Shape, dots.Radius = palette[2*i], 2, palette[2*i], draw.CircleGlyph{}, 3
		p.Add(line, dots)
		p.Legend.Add(s.name, line, dots)
		above := vg.Length(7)
		if i > 0 {
			above = -14 // below the line, where another is above it
		}
		if err := labels(p, points, vg.Point{Y: above}); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = at[0]/1.6, at[len(at)-1]*1.6
	p.Y.Min, p.Y.Max = 0, highest*1.35
	if logarithmic {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powers{}
		p.Y.Min, p.Y.Max = lowest/3, highest*4
	}
	return svg(p)
}

func labels(p *plot.Plot, points plotter.XYLabels, offset vg.Point) error {
	texts, err := plotter.NewLabels(points)
	if err != nil {
		return err
	}
	for i := range texts.TextStyle {
		texts.TextStyle[i].Font.Size, texts.TextStyle[i].Color, texts.TextStyle[i].XAlign = 8.5, ink, draw.XCenter
	}
	texts.Offset = offset
	p.Add(texts)
	return nil
}

// figure is a number for a reader.
func figure(value float64) string {
	whole := strconv.FormatFloat(value, 'f', -1, 64)
	integer, fraction, broken := strings.Cut(whole, ".")
	for i := len(integer) - 3; i > 0; i -= 3 {
		integer = integer[:i] + "," + integer[i:]
	}
	if broken {
		return integer + "." + fraction
	}
	return integer
}

// ticks are the places of an axis that have figures.
type ticks []float64

// Ticks has each place.
func (t ticks) Ticks(_, _ float64) []plot.Tick {
	var all []plot.Tick
	for _, at := range t {
		all = append(all, plot.Tick{Value: at, Label: figure(at)})
	}
	return all
}

// powers are the powers of ten of an axis.
type powers struct{}

// Ticks has each power between the two.
func (powers) Ticks(low, high float64) []plot.Tick {
	var all []plot.Tick
	for at := math.Pow(10, math.Ceil(math.Log10(low))); at <= high; at *= 10 {
		all = append(all, plot.Tick{Value: at, Label: figure(at)})
	}
	return all
}

// families are the fonts of a reader that have the measures of the one that was measured with.
const families = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif"

// svg draws the picture on paper with a margin.
func svg(p *plot.Plot) ([]byte, error) {
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(paper)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	return []byte(strings.ReplaceAll(out.String(), "font-family:Liberation Sans", families)), nil
}
