# SPDX-License-Identifier: Apache-2.0
# COMMAND's stdin, stdout, stderr, terminal and descriptors are its own.

test_binary_pipe() {
  head -c 3000000 /dev/urandom >data
  record -q cat <data >copy
  cmp data copy
  cat data | record -q cat | cmp data -
}

test_stderr_passes_through() {
  record -q sh -c 'echo to-out; echo to-err >&2' >out 2>err
  equal to-out "$(cat out)"
  equal to-err "$(cat err)"
}

test_closed_descriptors_stay_closed() {
  # Bash puts descriptor 255 or so into its own children only; what ls sees is what COMMAND sees.
  ls /proc/self/fd >plain
  record -q ls /proc/self/fd >profiled
  cmp plain profiled
  ls /proc/self/fd <&- >plain
  record -q ls /proc/self/fd <&- >profiled
  cmp plain profiled
  ls /proc/self/fd 2>&- >plain
  record -q ls /proc/self/fd 2>&- >profiled
  cmp plain profiled
  record -q sh -c 'ls /proc/self/fd >profiled 2>&1' <&- >&- 2>&-
  sh -c 'ls /proc/self/fd >plain 2>&1' <&- >&- 2>&-
  cmp plain profiled
}

test_inherited_descriptors_reach_command() {
  echo from-nine >nine
  equal from-nine "$(record -q sh -c 'cat <&9' 9<nine)"
}

# A reader of COMMAND's output waits for COMMAND alone, neither for the front nor for the sampler.
test_end_of_file_comes_when_command_closes() {
  mkfifo gate
  { record -q sh -c 'echo word; exec >&-; read word <gate'; echo ended >ended; } 3>&- | { cat >out; echo eof >eof; } &
  wait_for 20 test -s out
  # Our own subshell holds the pipe too; so look at who else does.
  echo >gate
  wait_for 20 test -s eof
  equal word "$(cat out)"
}

test_descriptors_are_not_held() {
  mkfifo held gate
  "$heaptap" record -q sh -c 'exec 7>&-; echo started >started; read word <gate' 7>held &
  front=$!
  # EOF although COMMAND, front and sampler all still run.
  timeout 20 cat held >out || fail 'someone holds descriptor 7'
  wait_for 20 test -s started
  echo >gate
  wait $front
}

test_terminal() {
  script -qec "$heaptap record -q sh -c 'test -t 0 && test -t 1 && test -t 2 && echo it-is-a-terminal; exit 8'" screen \
    >/dev/null || status=$?
  equal 8 "${status:-0}"
  matches it-is-a-terminal screen
  # Same process group: COMMAND is in the foreground, so that it may read and set the terminal.
  script -qec "$heaptap record -q stty -a" screen >/dev/null
  matches 'rows' screen
}
