# SPDX-License-Identifier: Apache-2.0
# The sampler keeps to its limits, and nothing of ours stays in the target but a mapping and its library.

survive=$targets/capture_survive

# period_bytes: the period that the comments give
period_bytes() {
  awk '$1 == "period" { n = $2; if ($3 ~ /^Ki/) n *= 1024; if ($3 ~ /^Mi/) n *= 1048576; print n }' comments
}

# guarded WHAT OPTION...: above the limit the period doubles, and the numbers stay right
guarded() {
  local what=$1
  shift
  "$heaptap" record -p 64 -o out.pb.gz "$@" "$survive" load truth 10000 2 2>err &
  front=$!
  wait_for 30 grep -q "the sampler is above $what: the sampling period is doubled to 128 B" err
  : >truth.end
  wait $front || fail "status $?: $(cat err)"
  profile_check out.pb.gz
  inuse=$(od -A n -t d8 -N 8 truth)
  comment_of out.pb.gz >comments
  matches '^period (128|256|512|[0-9.]+ [KM]i?)' comments
  # It doubles every second for as long as nobody ends the program, and what was in use when then decides how sure the
  # numbers are. At the last period T and size s, a block's variance is s^2 / (exp(s/T) - 1), less than s T, and it counts
  # less than T + s: by Bernstein's inequality one run in a million is beyond the bound. The C library has some bytes too.
  awk -v inuse="$inuse" -v got="$(total_of out.pb.gz inuse_space)" -v period="$(period_bytes)" 'BEGIN {
    log_odds = log(2e6); b = (period + 4096) * log_odds / 3; bound = b + sqrt(b * b + 2 * inuse * period * log_odds) + 20000
    printf "%.0f, truth %.0f, +- %.0f at most at period %.0f\n", got, inuse, bound, period
    d = got - inuse; exit !(period > 64 && d <= bound && d >= -bound) }' >within || fail "bytes in use: $(cat within)"
  cat within
}

test_cpu_limit_raises_the_period() { guarded --max-cpu --max-cpu 1; }
test_memory_limit_raises_the_period() { guarded --max-rss --max-rss 1M; }

test_oom_killer_takes_others_first() {
  need_root
  (echo -500 >/proc/self/oom_score_adj) 2>/dev/null || skip 'the kernel lets nobody here lower a score'
  "$heaptap" record -q -o out.pb.gz sleep 60 &
  front=$!
  wait_for 10 eval '[ -n "$(child_of $front sleep)" ]'
  equal -500 "$(cat "/proc/$(child_of $front heaptap-sampler)/oom_score_adj")" "the sampler's"
  equal "$(cat /proc/self/oom_score_adj)" "$(cat "/proc/$(child_of $front sleep)/oom_score_adj")" "the target's"
  kill "$(child_of $front sleep)"
  wait $front || :
}

# Rings are memory that a user may lock little of: they are made smaller. How much of a flood they hold is the machine's.
test_little_memory_may_be_locked() {
  stage truth
  mkdir -m 777 place
  cd place
  for kilobytes in 64 0; do
    (
      ulimit -l $kilobytes
      unprivileged "$heaptap" record -q -p 4K -o $kilobytes.pb.gz "$targets/truth" truth.tsv 20 1000
    ) || fail "status $?"
    profile_check $kilobytes.pb.gz
    at_least 99 "$(share_of '^(main|__clone3?|start_thread|\[lost stack\])$' $kilobytes.pb.gz)" 'stacks that reach main or are lost'
    at_least 1 "$(share_of '^(main|__clone3?|start_thread)$' $kilobytes.pb.gz)" 'stacks that reach main'
  done
}

# No descriptor, no thread, no child, no signal disposition; the pages of its GOT are as read-only as they were.
test_nothing_is_left_in_the_target() {
  cat >look.py <<'PY'
import os
print(sorted(os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd') if int(fd) < 3))
print(len(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')))
for line in open('/proc/self/status'):
    if line.startswith(('SigIgn', 'SigBlk', 'SigQ')) and not line.startswith('SigQ'):
        print(line, end='')
print(open('/proc/self/task/%d/children' % os.getpid()).read())
print(sum('rwx' in line.split()[1] for line in open('/proc/self/maps')))
PY
  exec </dev/null
  python3 look.py >plain 2>err
  record -q -p 1 -o x.pb.gz python3 look.py >profiled 2>err
  sed -i '1d' plain profiled
  cmp plain profiled || { diff plain profiled >&2; fail 'something of ours is left'; }
  # Full RELRO: what the loader made read-only stays so.
  readelf -lW "$HEAPTAP_PROGRAMS/libheaptap.so" | grep -q GNU_RELRO || fail 'no RELRO'
}

# A session of another version, a file that is none, a path that leads nowhere: the program runs, unprofiled.
test_other_versions_and_nonsense() {
  python3 - <<'PY'
import struct
def pool(name, magic, abi):
    open(name, 'wb').write(struct.pack('<QIIQ', magic, abi, 0, 0x1234).ljust(152, b'\0'))
pool('version', 0x7962626f6c706831, 99)
pool('magic', 1, 3)
open('short', 'wb').write(b'x')
open('zeros', 'wb').write(bytes(4096))
PY
  mkfifo fifo
  for path in version magic short zeros fifo /nowhere /dev/zero /dev/null /proc/self/mem / "$(printf '%0200d' 0)" ''; do
    for cookie in 0000000000001234 zzzzzzzzzzzzzzzz 1234 ''; do
      equal ok "$(HEAPTAP="$path:$cookie" LD_PRELOAD="$HEAPTAP_PROGRAMS/libheaptap.so" timeout "$(seconds 10)" sh -c 'echo ok')" "$path:$cookie"
    done
  done
  equal ok "$(HEAPTAP=x LD_PRELOAD="$HEAPTAP_PROGRAMS/libheaptap.so" timeout "$(seconds 10)" sh -c 'echo ok')" 'no colon'
}

# What the library can call at all: nothing that allocates, waits for a lock, prints, sleeps, or makes threads or processes.
test_imports() {
  objdump -T "$HEAPTAP_PROGRAMS/libheaptap.so" | awk '/UND/ { print $NF }' | sort >imported
  matches '^memcpy$' imported
  ! grep -E '^(p?thread_|mtx_|dl(sym|open|vsym)$|malloc|free$|.*printf|f?puts|write|fork|vfork|clone|exec|.*sleep|sched_|sem_|abort|exit|__assert|exp|log)' \
    imported >&2 || fail 'calls that have no place in a hook'
}
