// SPDX-License-Identifier: Apache-2.0

// oracle reads profiles with google/pprof's own library, as Debian ships it, and prints what it sees as tab-separated
// lines. Tests compare them with what we believe we wrote.
//
//	oracle [-drop] [-func] [-reach REGEX] FILE...
//
//	samples	N
//	total	TYPE/UNIT	SUM
//	func	TYPE	FLAT	CUM	NAME		with -func, largest cum first
//	reach	TYPE	SUM	TOTAL	PERCENT		with -reach: samples whose stack has a function that matches
//
// A file that pprof refuses ends it with status 1.
//
// Run: GO111MODULE=off GOPATH=/usr/share/gocode go run tests/readers/oracle.go FILE
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"sort"

	"github.com/google/pprof/profile"
)

func load(path string, drop bool) (*profile.Profile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return nil, err
	}
	if err := p.CheckValid(); err != nil {
		return nil, err
	}
	if drop {
		if err := p.RemoveUninteresting(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// frames lists the function names of a stack, leaf first, inlined functions included. An unnamed frame is its address.
func frames(s *profile.Sample) []string {
	var names []string
	for _, location := range s.Location {
		if len(location.Line) == 0 {
			names = append(names, fmt.Sprintf("%#x", location.Address))
		}
		for _, line := range location.Line {
			names = append(names, line.Function.Name)
		}
	}
	return names
}

func totals(p *profile.Profile) []int64 {
	sums := make([]int64, len(p.SampleType))
	for _, s := range p.Sample {
		for i, v := range s.Value {
			sums[i] += v
		}
	}
	return sums
}

func printFunctions(p *profile.Profile) {
	for i, t := range p.SampleType {
		flat, cum := map[string]int64{}, map[string]int64{}
		for _, s := range p.Sample {
			seen := map[string]bool{}
			for depth, name := range frames(s) {
				if depth == 0 {
					flat[name] += s.Value[i]
				}
				if !seen[name] {
					seen[name] = true
					cum[name] += s.Value[i]
				}
			}
		}
		var names []string
		for name := range cum {
			names = append(names, name)
		}
		sort.Slice(names, func(a, b int) bool {
			if cum[names[a]] != cum[names[b]] {
				return cum[names[a]] > cum[names[b]]
			}
			return names[a] < names[b]
		})
		for _, name := range names {
			fmt.Printf("func\t%s\t%d\t%d\t%s\n", t.Type, flat[name], cum[name], name)
		}
	}
}

func printReach(p *profile.Profile, pattern *regexp.Regexp) {
	sums, all := make([]int64, len(p.SampleType)), totals(p)
	for _, s := range p.Sample {
		for _, name := range frames(s) {
			if pattern.MatchString(name) {
				for i, v := range s.Value {
					sums[i] += v
				}
				break
			}
		}
	}
	for i, t := range p.SampleType {
		percent := 100.0
		if all[i] != 0 {
			percent = 100 * float64(sums[i]) / float64(all[i])
		}
		fmt.Printf("reach\t%s\t%d\t%d\t%.3f\n", t.Type, sums[i], all[i], percent)
	}
}

func main() {
	drop := flag.Bool("drop", false, "apply drop_frames first, as pprof's reports do")
	functions := flag.Bool("func", false, "print flat and cum of every function")
	reach := flag.String("reach", "", "print the share of samples that reach a function matching `REGEX`")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	var pattern *regexp.Regexp
	if *reach != "" {
		pattern = regexp.MustCompile(*reach)
	}
	for _, path := range flag.Args() {
		p, err := load(path, *drop)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
		fmt.Printf("samples\t%d\n", len(p.Sample))
		for i, sum := range totals(p) {
			fmt.Printf("total\t%s/%s\t%d\n", p.SampleType[i].Type, p.SampleType[i].Unit, sum)
		}
		if *functions {
			printFunctions(p)
		}
		if pattern != nil {
			printReach(p, pattern)
		}
	}
}
