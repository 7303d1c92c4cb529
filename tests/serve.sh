# SPDX-License-Identifier: Apache-2.0
# What tests of `heaptap serve` share.

children=()
stop_children() {
  kill "${children[@]}" 2>/dev/null || :
}
trap stop_children EXIT

# As a user of its own, who has no other sessions: root's server would show those of everybody.
user=()
if [ "$(id -u)" = 0 ]; then
  user=(setpriv --reuid "$other_user" --regid 65534 --clear-groups --inh-caps=-all)
fi
stage serve_program snapshot_api
cp "$HEAPTAP_PROGRAMS/heaptap-serve" bin/
chmod -R a+rX bin
mkdir -p -m 700 run
[ "$(id -u)" != 0 ] || chown "$other_user" run
export XDG_RUNTIME_DIR=$PWD/run

# serve [OPTION...]: starts it at a free port; $url is where. It ends with the test.
serve() {
  rm -f serve.err
  "${user[@]}" "$heaptap" serve --listen 127.0.0.1:0 "$@" 2>serve.err &
  serve_pid=$!
  children+=($serve_pid)
  wait_for 20 grep -q '^heaptap: serving on http' serve.err
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' serve.err | head -1)
}

# program NAME [OPTION...]: records tests/targets/serve_program, which does what `tell NAME LINE` says; its pid is in NAME.pid
program() {
  local name=$1 input
  shift
  mkdir -p -m 777 "$name"
  mkfifo "$name/in"
  "${user[@]}" "$heaptap" record -q --interval 0 -o "$name/%n.pb.gz" "$@" "$targets/serve_program" <"$name/in" >"$name/out" 2>"$name/err" &
  children+=($!)
  echo $! >"$name.front"
  exec {input}>"$name/in"
  echo $input >"$name.input"
  wait_for 20 test -s "$name/out"
  child_of "$(cat "$name.front")" serve_program >"$name.pid"
}

# tell NAME LINE...: and waits until it is done
tell() {
  local name=$1 input count
  input=$(cat "$name.input")
  shift
  for line; do
    count=$(wc -l <"$name/out")
    echo "$line" >&"$input"
    [ "$line" = spin ] || wait_for 20 more_than "$count" "$name/out"
  done
}

more_than() {
  [ "$(wc -l <"$2")" -gt "$1" ]
}

# finish NAME: ends it, and waits for that
finish() {
  echo quit >&"$(cat "$1.input")"
  wait "$(cat "$1.front")"
}

# metric NAME VALUE: does /metrics say so?
metric() {
  curl -s "$url/metrics" | grep -q "^$1 $2\$"
}

# own FILE...: they become the user's
own() {
  [ "$(id -u)" != 0 ] || chown "$other_user" "$@"
}

# fetch PATH [OPTION...]: its body goes to ./body, headers to ./head; prints the status
fetch() {
  local path=$1
  shift
  curl -sS --max-time "$(seconds 60)" -D head -o body -w '%{http_code}' "$@" "$url$path"
}

# answers STATUS PATH: does it?
answers() {
  [ "$(fetch "$2")" = "$1" ]
}

# header NAME: of the last answer
header() {
  tr -d '\r' <head | sed -n "s/^$1: //Ip"
}
