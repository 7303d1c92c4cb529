// SPDX-License-Identifier: Apache-2.0

// go_pprof FILE: Go's own net/http/pprof, for tests that compare heaptap serve with it. Writes its address to FILE.
package main

import (
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Args[1]+".new", []byte(listener.Addr().String()), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(os.Args[1]+".new", os.Args[1]); err != nil {
		panic(err)
	}
	panic(http.Serve(listener, nil))
}
