# SPDX-License-Identifier: Apache-2.0
# `heaptap serve` and requests that mean no good: hosts, pages of other sites, methods, paths, sizes, two ends.
# timeout: 180

. "$HEAPTAP_TOP/tests/serve.sh"

test_hosts_and_methods() {
  program a -p 1 -b copy
  serve --listen "unix:$PWD/socket"
  port=${url##*:}
  for host in localhost "localhost:$port" "127.0.0.1:$port" "[::1]:$port" 10.1.2.3; do
    equal 200 "$(fetch /debug/pprof/heap -H "Host: $host")" "$host"
  done
  for host in example.org "example.org:$port" localhost.example.org "127.0.0.1.example.org" '' '[x]' 'a b'; do
    equal 403 "$(fetch /debug/pprof/heap -H "Host;" -H "Host: $host")" "Host $host" ||
      equal 400 "$(fetch /debug/pprof/heap -H "Host: $host")" "Host $host"
    equal 403 "$(fetch / -H "Host: $host")" "Host $host"
  done 2>/dev/null || :
  equal 403 "$(fetch /debug/pprof/heap -H 'Host: example.org')"
  equal 403 "$(fetch / -H 'Host: example.org')"
  # Linux leads these to this machine, but no browser says whose page asks for them.
  for host in 0.0.0.0 "0.0.0.0:$port" '[::]' '[::ffff:127.0.0.1]'; do
    equal 403 "$(fetch /debug/pprof/heap -H "Host: $host")" "$host"
  done
  # The host of an absolute target counts, and Host does not.
  for target in http://example.org/debug/pprof/heap http://0.0.0.0/debug/pprof/heap http://localhost@example.org/ http:///; do
    equal 403 "$(fetch /debug/pprof/heap --request-target $target)" "$target"
  done
  equal 200 "$(fetch / --request-target http://localhost/debug/pprof/heap -H 'Host: example.org')"
  equal 200 "$(fetch /sd --request-target 'http://localhost:1234/sd' -H 'Host: example.org')"
  matches 'localhost:1234' body
  # No page of elsewhere reaches a unix socket.
  equal 200 "$(curl -s -o body -w '%{http_code}' --unix-socket socket http://example.org/debug/pprof/heap)"
  for method in POST PUT DELETE OPTIONS PATCH TRACE NONSENSE; do
    equal 405 "$(fetch /debug/pprof/heap -X $method)" $method
    equal 'GET, HEAD' "$(header Allow)"
  done
  equal 200 "$(fetch /debug/pprof/heap -I)"
  equal 200 "$(fetch /debug/pprof/symbol -X POST --data 0x1)"
  # Programs that read JSON get their errors so.
  equal 403 "$(fetch /api/v1/processes -H 'Host: example.org')"
  matches '^\{"error":"this server answers' body
  equal 405 "$(fetch /api/v1/processes -X PUT)"
  matches '^\{"error":' body
  # Nothing is said to other origins.
  fetch /api/v1/processes -H 'Origin: http://example.org' >/dev/null
  ! grep -qi access-control head || fail 'CORS'
  finish a
}

test_paths_do_not_leave() {
  program a -p 1 -b copy
  serve
  echo secret >secret.pb.gz
  for path in /../secret.pb.gz /..%2fsecret.pb.gz /%2e%2e/secret.pb.gz //etc/passwd '/debug/pprof/..%2f..%2fetc/passwd' \
    /page.css/../../secret.pb.gz '/%00' '/page.css%00'; do
    status=$(fetch "$path" --path-as-is)
    [ "$status" = 404 ] || fail "$path: $status"
    ! grep -q -e secret -e root: body || fail "$path"
  done
  for name in id pid service at base new client state; do
    for value in ../../etc/passwd /etc/passwd '..%2f..%2fetc%2fpasswd' f-../../x '%00' "$PWD/secret.pb.gz"; do
      for view in profile top tree leaks diff timeline growth profiles; do
        printf 'url = "%s/api/v1/%s?%s=%s"\n' "$url" $view $name "$value"
      done
    done
  done >urls
  curl -s --max-time "$(seconds 100)" -K urls >answers
  [ -s answers ] || fail 'no answers'
  ! grep -a -e secret -e root: answers || fail 'a file outside'
  equal 200 "$(fetch /healthz)"
  finish a
}

test_sizes() {
  serve
  head -c 100000 /dev/zero | tr '\0' a >large
  equal 200 "$(fetch "/healthz?$(head -c 6000 large)")"
  status=$(fetch "/healthz?$(head -c 20000 large)")
  case $status in 400 | 414 | 431) ;; *) fail "a long target: $status" ;; esac
  status=$(fetch /healthz -H "X: $(head -c 60000 large)")
  case $status in 431 | 413) ;; *) fail "large headers: $status" ;; esac
  equal 413 "$(fetch /debug/pprof/symbol --data-binary @large -H 'Expect:')"
  equal 200 "$(fetch /healthz)"
}

# asked_by SITE MODE DEST PATH: the status when a browser asks for it in the name of such a page
asked_by() {
  fetch "$4" -H "Sec-Fetch-Site: $1" -H "Sec-Fetch-Mode: $2" -H "Sec-Fetch-Dest: $3" -H 'Sec-Fetch-User: ?1'
}

# A page of another site may have a link to ours. It makes no browser ask for more, which would use up waits and the
# sampler's time; a port of localhost that another user serves is another site, too.
test_pages_of_other_sites() {
  local path site
  program a -p 1 -b copy
  serve
  for site in cross-site same-site nonsense; do
    equal 200 "$(asked_by $site navigate document /)" "a link from $site"
    for path in /debug/pprof/heap '/debug/pprof/profile?seconds=60' /api/v1/processes /metrics /sd /no/thing; do
      equal 403 "$(asked_by $site navigate document "$path")" "$path, a link from $site"
    done
    for path in / /page.css /debug/pprof/heap; do
      equal 403 "$(asked_by $site navigate iframe "$path")" "$path in $site"
      equal 403 "$(asked_by $site no-cors image "$path")" "$path in $site"
      equal 403 "$(asked_by $site cors empty "$path")" "$path in $site"
    done
  done
  equal 200 "$(asked_by same-origin cors empty /api/v1/processes)"
  equal 200 "$(asked_by none navigate document /debug/pprof/heap)" 'somebody types the address'
  finish a
}

# ends FILE: what the server sends for the requests on standard input, until it ends the connection
ends() {
  /usr/bin/python3 -c '
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.settimeout(60)
s.sendall(sys.stdin.buffer.read())
try:
    while part := s.recv(65536):
        sys.stdout.buffer.write(part)
except ConnectionResetError:
    pass' "${url##*:}" >"$1" || fail 'the connection stays'
}

# one_answer STATUS TEXT: a POST with these header lines and what follows them is answered once, with that status, and the
# connection ends; TEXT: as of printf
one_answer() {
  printf "POST /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\n$2" | ends answers
  equal 1 "$(grep -a -c '^HTTP/1.1 ' answers)" "answers to $2"
  grep -a -q "^HTTP/1.1 $1 " answers || fail "$2: $(head -1 answers)"
}

# Where two readers see two ends of a request, the one behind a proxy may take what a client sends in its body for a request
# of somebody else.
test_a_request_has_one_end() {
  local lines number evil='GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n' length=42
  serve
  equal $length "$(printf "$evil" | wc -c)"
  for lines in "Content-Length: $length\r\nContent-Length: 0" "Content-Length: 0\r\nContent-Length: $length" \
    'Content-Length: 0\r\ncontent-length: 0' 'Content-Length: 0\r\nTransfer-Encoding: chunked' \
    'Transfer-Encoding: chunked\r\nContent-Length: 5' 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked' \
    'Content-Length : 0' 'Transfer-Encoding : chunked' 'Content-Length: 0\r\nX: a\rb' 'Host: localhost' 'X\t: a'; do
    one_answer 400 "$lines\r\n\r\n0\r\n\r\n$evil"
  done
  for lines in 'chunked' 'gzip' 'xchunked' 'chunked, gzip' ''; do
    one_answer 411 "Transfer-Encoding: $lines\r\n\r\n0\r\n\r\n$evil"
  done
  # A chunk whose first line is longer than any buffer: no reader of it is busy until the time is over.
  one_answer 411 "Transfer-Encoding: chunked\r\n\r\n1;$(head -c 40000 /dev/zero | tr '\0' a)"
  for number in +0 '0, 0' 0x0 -1 '' 18446744073709551616; do
    printf "POST /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\nContent-Length: $number\r\n\r\n$evil" | ends answers
    ! grep -a -q -e '^HTTP/1.1 2' -e '^ok$' answers || fail "a length of $number"
  done
  # What is answered is one request all the same, where a proxy may have seen another end.
  program a -p 1 -b copy
  one_answer 200 "Content-Length: 0\r\n\r\n$evil"
  one_answer 200 "Content-Length:\r\n $length\r\n\r\n$evil"
  one_answer 200 "Connection: keep-alive\r\nContent-Length: 0\r\n\r\n$evil$evil"
  printf "$evil$evil" | ends answers
  equal 1 "$(grep -a -c '^HTTP/1.1 ' answers)" 'answers to two requests'
  finish a
  equal 200 "$(fetch /healthz)"
}
