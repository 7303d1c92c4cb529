# SPDX-License-Identifier: Apache-2.0
# Of bench/attach.sh: what a program and its profile have of it.

# ---- calls

# call NAME [beside]: what it says, attached to if $attached
call() {
  rm -f in said
  mkfifo in
  "$targets/attach_calls" "$@" <in >said 2>&1 &
  target=$!
  exec 7>in
  waits() { says ready && grep -q '^State:.*S (' /proc/$target/status; }
  until_true 20 waits
  [ -z "${attached:-}" ] || "$heaptap" record -q -P $target --duration 1ms -o p/ 2>log 7>&- || cat log >&2
  case $1 in
    sigwait) kill -USR2 $target ;;
    poll_input | epoll_input | read | accept | write | uring_*) echo >&7 ;;
  esac
  wait $target
  exec 7>&-
  answer=$(tail -n 1 said | cut -d ' ' -f 2-)
}

calls() {
  echo 'call | without | attached, one thread | attached, another thread in poll'
  for name in poll poll_input select epoll epoll_input read accept futex nanosleep sem_timedwait sigwait sigtimed semop uring \
    uring_input uring_submit receive write registers registers_wide; do
    attached='' call $name
    row="$name | $answer"
    attached=1 call $name
    row="$row | $answer"
    attached=1 call $name beside
    echo "$row | $answer"
  done
}

# ---- seen

look() { python3 -B "$top/tests/attach_seen.py" "$target" >"$1"; }

differences() { python3 -B "$top/tests/attach_seen.py" "$1" "$2"; }

# compare NAME: the process, which rests
compare() {
  look before
  look again
  for _ in 1 2 3; do
    "$heaptap" record -P "$target" --duration 20ms -o p/ >log 2>&1 || cat log
  done
  look after
  differences before after >difference
  echo "$1: $(grep -c ^mapping before) mappings, $(grep -c ^descriptor before) descriptors, $(grep -c ^thread before) lines of" \
    "threads' status; differs by itself: $(differences before again | wc -l); after 3 attachments: changed or gone $(grep -vc '^new' difference), new:"
  grep -v '^new' difference | cut -c 1-150
  grep '^new' difference | cut -d ' ' -f 2- | sed 's/^/  /'
}

seen() {
  for program in "$targets/attach_calls poll_input beside" "/usr/bin/python3 -uc print('ready');input()"; do
    rm -f in said
    mkfifo in
    # shellcheck disable=SC2086
    $program <in >said 2>&1 &
    target=$!
    exec 7>in
    until_true 20 says ready
    sleep 0.2
    compare "${program:0:60}"
    echo >&7
    wait $target
    echo "  it ended with $?: $(tail -1 said)"
  done
  mkdir -p logs
  chmod 777 . logs
  printf 'daemon off; pid %s/pid; error_log %s/log;\nevents {}\nhttp { access_log off; server { listen 127.0.0.1:18089; } }\n' "$work" "$work" >conf
  /usr/sbin/nginx -p "$work" -c "$work/conf" &
  master=$!
  until_true 20 pgrep -P $master >/dev/null
  sleep 0.5
  for target in $master $(pgrep -P $master); do
    compare "nginx $(tr '\0' ' ' <"/proc/$target/cmdline" | cut -c 1-30)"
  done
  kill $master
  wait $master
  echo "  nginx ended with $?; its log: $(cat log.* log 2>/dev/null | grep -c '\[')"
}

# ---- truth

truth_run() { # ROUNDS PACE THREADS OPTION...
  rm -rf in said p
  mkfifo in
  "$targets/truth" truth.tsv "$1" "$2" "$3" wait <in >said &
  target=$!
  exec 7>in
  until_true 20 says ready
  rm -f log
  "$heaptap" record -o p/ -P $target "${@:4}" 2>log 7>&- &
  sampler=$!
  until_true 60 in_force
  echo >&7
  wait $target
  exec 7>&-
  wait $sampler
  "$build/tests/readers/oracle" -func p/*.exit.pb.gz >functions
  "$heaptap" report p/*.exit.pb.gz 2>/dev/null | grep -m 1 lost
}

truth() {
  rm -rf in said p log
  mkfifo in
  "$targets/attach_truth" 4 "$targets/attach_module" <in >said &
  target=$!
  exec 7>in
  until_true 20 says ready
  "$heaptap" record -o p/ -P $target -p 1 2>log 7>&- &
  sampler=$!
  until_true 60 in_force
  echo >&7
  until_true 60 says done
  kill -TERM $sampler
  wait $sampler
  exec 7>&-
  wait $target
  echo 'attach_truth, -p 1: function | wanted alloc_objects alloc_space inuse_objects inuse_space | profile'
  while read -r function wanted; do
    echo "$function | $wanted |" $("$build/tests/readers/oracle" -reach "^$function\$" p/*."$target".detach.pb.gz $(ls p/*.exit.pb.gz) 2>/dev/null |
      awk -F '\t' '$1 == "reach" { sub("/.*", "", $2); v[$2] += $3 } END { print v["alloc_objects"] + 0, v["alloc_space"] + 0, v["inuse_objects"] + 0, v["inuse_space"] + 0 }')
  done <<'END'
thread_work 2000 600000 1000 300000
new_thread 400 28000 400 28000
main_grow 2 60000 1 50000
module_alloc 200 200000 200 200000
child_work 50 100000 50 100000
old_frees 0 0 0 0
END
  echo 'truth, -p 1, 4 threads:'
  truth_run 10 2000 3 -p 1
  python3 -B "$top/tests/compare_truth.py" truth.tsv 1 -v <functions | awk '{ print "  " $0 }'
  for _ in $(seq "${1:-5}"); do
    echo 'truth, default period:'
    truth_run 1500 20 0
    python3 -B "$top/tests/compare_truth.py" truth.tsv 524288 -v <functions | grep -E 'alloc_space|sum' | awk '{ print "  " $0 }'
  done
}

# ---- pair

pair() {
  local rounds=${1:-15} kind n=0
  local -A in out pid
  gcc -O2 -shared -fPIC -w -D_GNU_SOURCE -o forward.so "$top/bench/capture_forward.c"
  # shellcheck disable=SC2034
  for kind in native forward off preloaded attached detached; do
    mkfifo $kind.in $kind.out
    case $kind in
      forward) LD_PRELOAD=$work/forward.so "$build/bench/pair" <$kind.in >$kind.out & ;;
      off) LD_PRELOAD=$build/libheaptap.so "$build/bench/pair" <$kind.in >$kind.out & ;;
      preloaded) "$heaptap" record -q -b copy -p 1024G -o x.pb.gz "$build/bench/pair" <$kind.in >$kind.out & ;;
      *) "$build/bench/pair" <$kind.in >$kind.out & ;;
    esac
    pid[$kind]=$!
    exec {n}>$kind.in
    in[$kind]=$n
    exec {n}<$kind.out
    out[$kind]=$n
    read -r -u "${out[$kind]}" answer
  done
  "$heaptap" record -q -b copy -p 1024G -P ${pid[detached]} --duration 50ms -o p/ || exit 1
  "$heaptap" record -b copy -p 1024G -P ${pid[attached]} -o p/ 2>log &
  sampler=$!
  until_true 60 in_force
  for _ in $(seq "$rounds"); do
    for kind in native forward off preloaded attached detached; do
      echo go >&"${in[$kind]}"
      read -r -u "${out[$kind]}" answer
      echo "$kind $answer"
    done
  done | tee "${ANSWERS:-answers}" >answers
  kill -TERM $sampler
  wait $sampler
  for kind in native forward off preloaded attached detached; do
    awk -v kind=$kind '
      $1 == "native" { native = $2 } $1 == "preloaded" { preloaded = $2 }
      $1 == kind { v[++n] = $2 } 
      END { asort_(v, n); printf "  %-10s %6.2f ns [%.2f..%.2f], n %d\n", kind, v[int((n + 1) / 2)], v[1], v[n], n }
      function asort_(a, n, i, j, t) { for (i = 2; i <= n; i++) { t = a[i]; for (j = i - 1; j > 0 && a[j] > t; j--) a[j + 1] = a[j]; a[j + 1] = t } }' answers
    n=${in[$kind]}
    exec {n}>&-
  done
  wait
}
