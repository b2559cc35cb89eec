package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a number of bytes written as 512MiB, 2GiB, 2GB or plain digits.
type byteSize int64

var byteUnits = []struct {
	suffix string
	factor int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"b", 1}, {"", 1},
}

func (b *byteSize) Set(s string) error {
	text := strings.ToLower(strings.TrimSpace(s))
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || n <= 0 || n*float64(u.factor) > 1<<50 {
			break
		}
		*b = byteSize(n * float64(u.factor))
		return nil
	}
	return fmt.Errorf("%q: want a size such as 512MiB or 2GiB", s)
}

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *byteSize) Type() string { return "SIZE" }
