package versus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// spread is the median of a measure over the rounds, and its bounds.
type spread struct{ median, min, max float64 }

func (o Outcome) spread(side string, of func(Round) float64) spread {
	var v []float64
	for _, r := range o.Rounds[side] {
		v = append(v, of(r))
	}
	slices.Sort(v)
	if len(v) == 0 {
		return spread{}
	}
	m := v[len(v)/2]
	if len(v)%2 == 0 {
		m = (m + v[len(v)/2-1]) / 2
	}
	return spread{m, v[0], v[len(v)-1]}
}

// Micros is a side's median server CPU time a call; 0 when it could not be seen.
func (o Outcome) Micros(side string) float64 {
	return o.spread(side, func(r Round) float64 { return r.MicrosPerCall }).median
}

// PerSecond is a side's median rate.
func (o Outcome) PerSecond(side string) float64 {
	return o.spread(side, func(r Round) float64 { return r.PerSecond }).median
}

// Ratio is one number out of two medians.
type Ratio struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Ratios are what the comparison is about: how far above the floor, how much
// less than the server itself.
func (o Outcome) Ratios() []Ratio {
	var out []Ratio
	add := func(name string, a, b float64) {
		if a > 0 && b > 0 {
			out = append(out, Ratio{name, a / b})
		}
	}
	add("CPU through/floor", o.Micros("through"), o.Micros("floor"))
	add("CPU direct/through", o.Micros("direct"), o.Micros("through"))
	add("calls/s through/direct", o.PerSecond("through"), o.PerSecond("direct"))
	return out
}

// Print writes one table: medians, with the least and the most in parentheses.
func (o Outcome) Print(w io.Writer) error {
	loop := "closed loop"
	if o.Config.Rate > 0 {
		loop = fmt.Sprintf("open loop at %.0f/s", o.Config.Rate)
	}
	_, err := fmt.Fprintf(w, "%s: %s; %s, %d connections, %s, %d rounds of %g s, median (min-max)\n",
		o.Config.Name, o.Config.Title, o.Config.Workload.Mode, o.Config.Connections, loop, max(1, o.Config.Rounds), o.Config.Seconds)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tcalls/s\tp50\tp95\tp99\tserver CPU a call\terrors\t")
	for _, side := range o.Sides {
		rate := o.spread(side, func(r Round) float64 { return r.PerSecond })
		micros := o.spread(side, func(r Round) float64 { return r.MicrosPerCall })
		cost := "-"
		if micros.median > 0 {
			cost = fmt.Sprintf("%.2f µs (%.2f-%.2f)", micros.median, micros.min, micros.max)
		}
		failed := int64(0)
		for _, r := range o.Rounds[side] {
			failed += r.Errors
		}
		fmt.Fprintf(t, "%s\t%.0f (%.0f-%.0f)\t%s\t%s\t%s\t%s\t%d\t\n", side, rate.median, rate.min, rate.max,
			o.latency(side, func(r Round) time.Duration { return r.P50 }), o.latency(side, func(r Round) time.Duration { return r.P95 }),
			o.latency(side, func(r Round) time.Duration { return r.P99 }), cost, failed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var ratios []string
	for _, r := range o.Ratios() {
		ratios = append(ratios, fmt.Sprintf("%s %.2f", r.Name, r.Value))
	}
	_, err = fmt.Fprintln(w, strings.Join(ratios, ", "))
	return err
}

func (o Outcome) latency(side string, of func(Round) time.Duration) string {
	s := o.spread(side, func(r Round) float64 { return float64(of(r)) })
	return short(s.median)
}

func short(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", ns/1e3)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f ms", ns/1e6)
	}
	return d.Round(time.Second).String()
}

// line is what results.jsonl keeps of one run.
type line struct {
	At          string             `json:"at"`
	Bench       string             `json:"bench"`
	Title       string             `json:"title"`
	Mode        string             `json:"mode"`
	Connections int                `json:"connections"`
	Rate        float64            `json:"rate"`
	Sides       map[string][]Round `json:"sides"`
	Ratios      []Ratio            `json:"ratios"`
}

// Append adds the run to the file at path as one line of JSON.
func (o Outcome) Append(path string, at time.Time) error {
	return AppendLine(path, line{at.UTC().Format(time.RFC3339), o.Config.Name, o.Config.Title, string(o.Config.Workload.Mode),
		o.Config.Connections, o.Config.Rate, o.Rounds, o.Ratios()})
}

// AppendLine adds v to the file at path as one line of JSON.
func AppendLine(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}
