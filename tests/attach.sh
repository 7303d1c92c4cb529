# SPDX-License-Identifier: Apache-2.0
# What tests of attaching share: targets that answer lines, and what can be seen of a process.

need_x86_64 'attaching'

# running COMMAND...: starts it in the background, with a pipe for its lines; sets target
running() {
  rm -f said # of a program before, which was ready
  mkfifo in
  "$@" <in >said 2>said.err &
  target=$!
  exec 7>in
  wait_for 20 says ready
}

says() { grep -q "$1" said; }
said_times() { [ "$(grep -c "$1" said)" = "$2" ]; }

# attach OPTIONS...: to target, and waits until it is in force; sets sampler
attach() {
  rm -f log # of an attachment before
  "$heaptap" record -i 60s -o p/ "$@" -P "$target" 2>log 7>&- &
  sampler=$!
  attached() { grep -qs 'attached; paused one thread' log || ! kill -0 $sampler 2>/dev/null; }
  wait_for 30 attached
  grep -q "attached; paused one thread" log || fail "not attached, status $(wait $sampler || echo $?): $(cat log)"
}

# detach: a job in the background ignores SIGINT
detach() {
  kill -TERM "$sampler"
  wait "$sampler" || fail "record ended with $?: $(cat log)"
}

finish() {
  exec 7>&-
  wait "$target" || fail "the target ended with $?: $(cat said said.err)"
}
