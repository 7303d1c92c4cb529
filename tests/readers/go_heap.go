// SPDX-License-Identifier: Apache-2.0

// go_heap writes a heap profile of itself with Go's own runtime: the profile of foreign origin that tests read.
// tests/readers/go_heap.pb.gz is one of them (go run tests/readers/go_heap.go FILE).
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

//go:noinline
func keep(count, size int) {
	for i := 0; i < count; i++ {
		kept = append(kept, make([]byte, size))
	}
}

//go:noinline
func drop(count, size int) {
	for i := 0; i < count; i++ {
		keep(1, size)
		kept = kept[:len(kept)-1]
	}
}

func main() {
	runtime.MemProfileRate = 1
	keep(100, 1000)
	drop(1000, 64)
	runtime.GC()
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	if err := pprof.WriteHeapProfile(file); err != nil {
		panic(err)
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
}
