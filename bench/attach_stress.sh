# SPDX-License-Identifier: Apache-2.0
# Of bench/attach.sh: what cannot be seen in one attachment.

# ---- cycles

# resident KiB, mappings, of these ours
memory_of() {
  echo "$(awk '/^VmRSS/ { print $2 }' /proc/$1/status) $(wc -l </proc/$1/maps) $(grep -cE 'heaptap|/dev/zero' /proc/$1/maps)"
}

# stood WHAT: ms, from the log
stood() {
  local found
  found=$(sed -n "s/.*: $1; paused one thread for \\([0-9.]*\\) ms/\\1/p" log | head -n 1)
  echo "${found:--}"
}

# recordings NAME COUNT: a line as bench/attach_cycles.c has them, for each
recordings() {
  local began i status took
  for i in $(seq "$2"); do
    began=${EPOCHREALTIME/./}
    # shellcheck disable=SC2086
    timeout 300 "$heaptap" record -P $target --duration 10ms -o p/ ${OPTIONS:-} >log 2>&1
    status=$?
    took=$(((${EPOCHREALTIME/./} - began) / 1000))
    kill -0 $target 2>/dev/null || return
    echo "$i $status $took $(stood attached) $(stood detached) $(memory_of $target)" >>"$folder/$1"
    [ $status = 0 ] || sed "s/^/$i: $status: /" log >>"$folder/$1.failed"
    rm -rf p
  done
}

# cycles HOW NAME LIBRARY COUNT
cycles() {
  local how=$1 name=$2 library=$3 count=$4
  start "$library" 8 spin
  # cycle, status, ms, then of attach and of detach the ms that one thread was paused, then memory
  echo "0 0 0 - - $(memory_of $target)" >"$folder/$name"
  : >"$folder/$name.failed"
  if [ "$how" = recordings ]; then
    recordings $name "$count"
  else
    "$build/bench/attach_cycles" "$build/libheaptap-attach.so" $target "$count" 10 >>"$folder/$name" 2>>"$folder/$name.failed"
  fi
  kill -0 $target 2>/dev/null || echo "died" >>"$folder/$name.failed"
  stop
  echo "$verdict" >"$folder/$name.end"
}

# The same target for SECONDS, and nobody attaches.
control() {
  start "$1" 8 spin
  for second in $(seq 0 10 "$2"); do
    echo "$second $(memory_of $target)"
    sleep 10
  done >"$folder/$3.control"
  stop
}

report() {
  local file
  for file in "$1"/*.failed; do
    file=${file%.failed}
    echo "$(basename "$file"): $(awk '$1 > 0' "$file" | wc -l) cycles, $(awk '$1 > 0 && $2 == 0' "$file" | wc -l) of them whole; the target: $(cat "$file.end" 2>/dev/null || echo 'runs')"
    awk '$4 != "-" { print $4 }' "$file" | quantiles 'attach stood still, ms'
    awk '$5 != "-" { print $5 }' "$file" | quantiles 'detach stood still, ms'
    awk '$1 > 0 { print $3 }' "$file" | quantiles 'a cycle, ms'
    awk '$1 == 0 || $1 == 1 || $1 == 10 || $1 == 100 || $1 % 250 == 0 { last = $1; show() } { keep = $0 } END { split(keep, f); if (f[1] != last) { $0 = keep; show() } }
      function show() { printf "  cycle %d: RSS %d KiB, %d mappings, %d of them ours\n", $1, $6, $7, $8 }' "$file"
    [ ! -e "$file.control" ] || awk 'NR == 1 || NR % 3 == 0 { printf "  control, %d s: RSS %d KiB, %d mappings\n", $1, $2, $3 }' "$file.control"
    [ ! -s "$file.failed" ] || sort "$file.failed" | cut -d : -f 2- | sed 's/pid [0-9]*//; s/[0-9]* tries/N tries/' | sort | uniq -c | sed 's/^/  failed /'
  done
}

# ---- kills

# judge HOW: what is left of it. Every thread runs, a detach works if it is in force, every byte is right.
judge() {
  local how=$1
  if ! kill -0 $target 2>/dev/null; then
    echo "$how: died"
    return
  fi
  # Where only the first process was killed, the other one first notices.
  let_go() { ! grep -qsE '^(State:.*[tT] \(|TracerPid:.[1-9])' /proc/$target/task/*/status; }
  until_true 60 let_go || echo "$how: stands still"
  if grep -q '/memfd:heaptap ' /proc/$target/maps; then
    echo "in force" >>forces
    # it may end by itself meanwhile: the thread that was in the call goes on
    timeout 100 "$heaptap" detach $target >log 2>&1 || ! grep -q '/memfd:heaptap ' /proc/$target/maps ||
      echo "$how: detach: $(tail -1 log)"
  fi
  stop
  [[ $verdict == 'status 0, '*' faults 0' ]] || echo "$how: $verdict $(tail -3 said.err)"
}

# An attachment whose sampler is gone: for `heaptap detach`, which does at the end of an attachment what record does.
orphan() {
  rm -f log
  "$heaptap" record -P $target -o p/ >log 2>&1 &
  sampler=$!
  until_true 100 in_force || { echo "not attached: $(cat log)"; exit 1; }
  kill -KILL $sampler
  wait $sampler 2>/dev/null
}

# ptrace_calls COMMAND...: how many of them it makes, by the process that it makes for that
ptrace_calls() {
  strace -f -o trace -e trace=ptrace "$@" >log 2>&1
  grep -c 'ptrace(' trace
}

kills() {
  local count=$1 what=$2 killed=0 calls=1 window=1 i at sampler group status
  local -a command
  : >forces
  : >bad
  for ((i = 1; killed < count && i <= 5 * count; i++)); do
    start '' 4
    [ $((i % 3)) != 0 ] || "$heaptap" record -q -P $target --duration 1ms -o p/ >log 2>&1 || echo "$i: $(cat log)"
    [ "$what" = attach ] || orphan
    # killed later, it ends by itself soon
    command=("$heaptap" record -q -P $target --duration 1ms -o p/)
    [ "$what" = attach ] || command=("$heaptap" detach $target)
    if [ $((i % 20)) = 1 ]; then # how long it takes and how many calls, now
      calls=$(ptrace_calls "${command[@]}")
      [ "$what" = attach ] || orphan
      at=${EPOCHREALTIME/./}
      "${command[@]}" >log 2>&1
      window=$(((${EPOCHREALTIME/./} - at) / 1000 + 1))
      [ "$what" = attach ] || orphan
    fi
    case $((i % 3)) in
      0) # the process that holds the thread, at one of its calls
        at=$((1 + (RANDOM * 32768 + RANDOM) % calls))
        strace -f -o trace -e trace=ptrace -e inject=ptrace:signal=SIGKILL:when=$at "${command[@]}" >log 2>&1
        status=$?
        ! grep -q 'killed by SIGKILL' trace || status=137
        at="ptrace call $at of $calls"
        ;;
      *) # the first process, or all of them
        at=$((RANDOM % window))
        setsid "${command[@]}" >log 2>&1 & # no fork: a job here is no leader of a group
        group=$!
        sleep "$(printf '%d.%03d' $((at / 1000)) $((at % 1000)))"
        if [ $((i % 3)) = 1 ]; then kill -KILL $group; else kill -KILL -- -$group; fi 2>/dev/null
        wait $group 2>/dev/null
        status=$?
        at="$at ms of $window, $([ $((i % 3)) = 1 ] && echo first || echo all)"
        ;;
    esac
    [ $status != 137 ] || killed=$((killed + 1))
    echo "$i $at: $status" >>moments
    judge "$i ($at)" >>bad
    rm -rf p
  done
  echo "$what: $killed of $((i - 1)) were killed before they were done, $(wc -l <forces) of them with the hooks in; $(wc -l <bad) targets were harmed"
  cat bad
}
