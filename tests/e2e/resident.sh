# SPDX-License-Identifier: Apache-2.0
# Resident memory by what it is for: the parts add up to the kernel's figure, and are what they are called.
# timeout: 240

# part WORD: of the line in ./rss
part() { grep -oE " $1=-?[0-9]+" rss | cut -d = -f 2; }

# kernel_bytes PID: the sum over its mappings, as the kernel adds it up
kernel_bytes() { awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$1/smaps_rollup"; }

# adds_up PID NAME: a snapshot of a process that waits. Leaves its line in ./rss.
adds_up() {
  local before after sum doctor
  before=$(kernel_bytes "$1")
  "$heaptap" snapshot "$1" >paths
  after=$(kernel_bytes "$1")
  profile_check "$(head -n 1 paths)"
  comment_of "$(head -n 1 paths)" | grep '^rss: ' >rss || fail "$2: no such comment"
  sum=$(grep -oE ' (heap|slack|anonymous|code|files|shared|stacks|heaptap|kernel)=-?[0-9]+' rss | awk -F = '{ sum += $2 } END { print sum }')
  equal "$(part total)" "$sum" "$2: sum of the parts"
  within_2_percent "$(part total)" "$before" "$after" || fail "$2: $(part total) bytes, the kernel has $before and $after"
  doctor=$("$heaptap" doctor "$1" | awk '/^ok +it has .* resident/ { print $4, $5 }' || :)
  echo "$2: total $(part total), kernel $before to $after, doctor $doctor; $(cat rss)"
  within_2_percent "$(echo "$doctor" | awk '{ print $1 * ($2 == "GiB" ? 1073741824 : $2 == "MiB" ? 1048576 : 1024) }')" \
    "$before" "$(kernel_bytes "$1")" || fail "$2: doctor says $doctor, the kernel had $before bytes"
}

# within_2_percent GOT A B: of either, or between them
within_2_percent() {
  awk -v got="$1" -v a="$2" -v b="$3" 'BEGIN { low = a < b ? a : b; high = a < b ? b : a; exit !(got >= low * 0.98 && got <= high * 1.02) }'
}

# in_use_at_least BYTES: but for five standard errors of the estimate
in_use_at_least() { at_least $(($1 - 5 * $(part heap_error))) "$(part heap)" 'heap in use'; }

need() { command -v "$1" >/dev/null || skip "no $1"; }

test_redis() {
  need redis-server
  "$heaptap" record -q -p 64K redis-server --port 0 --unixsocket "$PWD/socket" --save '' --appendonly no --enable-debug-command yes >server.log 2>&1 &
  front=$!
  redis_answers() { [ "$(redis-cli -s socket ping 2>/dev/null)" = PONG ]; }
  wait_for 30 redis_answers
  equal OK "$(redis-cli -s socket debug populate 100000 key 100)" populate
  adds_up "$(child_of $front redis-server)" redis
  in_use_at_least 15000000 # 100 bytes a key, its name, and the table
  redis-cli -s socket shutdown nosave || :
  wait $front
}

test_nginx() {
  need nginx
  mkdir logs
  printf 'daemon off; pid nginx.pid; error_log error.log; worker_processes 1; events {}
    http { access_log off; server { listen unix:%s/socket; } }' "$PWD" >nginx.conf
  "$heaptap" record -q nginx -p "$PWD" -c nginx.conf >server.log 2>&1 &
  front=$!
  worker() { child_of "$(child_of $front nginx)" nginx | grep -q .; }
  wait_for 30 worker
  answers() { curl -s --unix-socket socket http://x/ >/dev/null; }
  wait_for 30 answers
  adds_up "$(child_of $front nginx)" 'nginx, master'
  kill -QUIT "$(cat nginx.pid)"
  wait $front
}

# waits COMMAND...: records it until it has printed "ready"; sets pid and front
waits() {
  mkfifo fifo
  "$heaptap" record "$@" <fifo >out 2>err &
  front=$!
  exec 9>fifo
  wait_for 60 grep -q '^ready' out
  pid=$(child_of $front "$name")
}

ends() {
  exec 9>&-
  wait $front
}

test_python() {
  name=python3
  waits -q -p 64K /usr/bin/python3 -c 'import sys; kept = [bytearray(3000) for _ in range(10000)]; print("ready", flush=True); sys.stdin.read()'
  adds_up "$pid" python3
  in_use_at_least 30000000
  ends
}

test_node() {
  need node
  name=node
  waits -q node -e 'const kept = []; for (let i = 0; i < 200000; i++) kept.push({ i }); console.log("ready"); process.stdin.resume()'
  adds_up "$pid" node
  ends
}

# Stopped in the middle of its work.
test_cc1() {
  python3 -c "
for i in range(4000):
    print(f'int f{i}(int *a, int n) {{ int s = 0; for (int k = 0; k < n; k++) s += a[k] * {i} ^ (s << {i % 7}); return s; }}')" >large.c
  cc1=$(gcc -print-prog-name=cc1)
  "$heaptap" record -q "$cc1" -quiet -O2 large.c -o /dev/null >out 2>&1 &
  front=$!
  large() { pid=$(child_of $front cc1) && [ -n "$pid" ] && [ "$(kernel_bytes "$pid")" -gt 40000000 ]; }
  wait_for 60 large
  kill -STOP "$pid"
  stopped() { grep -q '^State:.*T (stopped)' "/proc/$pid/status"; }
  wait_for 10 stopped
  adds_up "$pid" cc1
  kill -KILL "$pid"
  wait $front || :
}

# between LOW HIGH GOT WHAT
between() { at_least "$1" "$3" "$4"; at_least "$3" "$2" "$4 (at most)"; }

# Every kind, in amounts that are known.
test_every_part() {
  head -c 4194304 /dev/zero >file
  name=resident
  waits -p 4K "$targets/resident" 64 40 file
  adds_up "$pid" resident
  # In use: half of 64 MiB in small blocks, and two quarters. The estimate may be five standard errors away.
  error=$(part heap_error)
  between $((67108000 - 5 * error)) $((67108864 + 200000 + 5 * error)) "$(part heap)" 'heap in use'
  # The allocator's mappings: [heap], one block by mmap, an arena. Its overhead is 8 bytes in 1000.
  between 100663296 $((101470000 + 1500000)) $(($(part heap) + $(part slack))) "the allocator's mappings"
  between $((40 << 20)) $((41 << 20)) "$(part anonymous)" 'other anonymous mappings'
  equal $((8 << 20)) "$(part shared)" 'shared memory'
  between $((4 << 20)) $((5 << 20)) "$(part files)" 'other files'
  between $((3 * 256 << 10)) $((4 * 1024 << 10)) "$(part stacks)" stacks
  equal 4 "$(part threads)" threads
  between 500000 60000000 "$(part heaptap)" "heaptap's own"
  between 1000000 8000000 "$(part code)" 'program and libraries'
  ends
  # The end summary has the newest reading: nothing changed after it.
  matches '^heaptap:   resident 1[0-9]{2}\.[0-9] MiB, [0-9.]+ s before the end:$' err
  matches '^heaptap:  +[0-9.]+ MiB  heap in use, \+- [0-9.]+ [KM]iB$' err
  matches "^heaptap:  +4[01]\.[0-9] MiB  not malloc, by the samples: pools, JS or Java heap, mmap$" err
  matches '^heaptap:  +8\.0 MiB  shared memory$' err
  ! grep 'stacks of 4 threads' err || fail 'a part of less than a hundredth'
  ! grep -e --mmap err || fail 'the hint, though most is the heap'
  comment_of "$(only heaptap.resident.*.exit.pb.gz)" | grep -q '^rss: total=1' || fail 'no comment at the end'
}

# Where the heap explains little, --mmap is the hint; with it there is none.
test_the_hint() {
  head -c 4096 /dev/zero >file
  name=resident
  waits "$targets/resident" 4 64 file
  adds_up "$pid" resident
  ends
  matches '^heaptap:   not seen: 6[45]\.[0-9] MiB are memory in which no sampled block lies: pools, mmap; --mmap shows who makes it grow$' err
  rm -f fifo out err heaptap.*
  waits --mmap "$targets/resident" 4 64 file
  adds_up "$pid" 'resident --mmap'
  between $((64 << 20)) $((72 << 20)) "$(part mmap)" 'mappings in use'
  ends
  ! grep -q 'look inside' err || fail 'the hint, though it is followed'
  matches 'MiB  other anonymous memory \(mapped by the program, touched or not: 6[4-9]\.' err
}

# Readings are made while it lives; a sudden end takes none of them away.
test_killed() {
  head -c 4096 /dev/zero >file
  name=resident
  waits "$targets/resident" 16 1 file
  adds_up "$pid" resident
  kill -9 "$pid"
  status=0
  wait $front || status=$?
  equal 137 $status status
  exec 9>&-
  matches '^heaptap:   resident [0-9.]+ MiB, [0-9.]+ s before the end:$' err
}

# Without root's rights, the kernel's permissions to read a process are those of its user.
test_unprivileged() {
  head -c 4096 /dev/zero >file
  stage resident
  chmod 777 .
  mkfifo fifo
  unprivileged "$heaptap" record "$targets/resident" 16 1 file <fifo >out 2>err &
  front=$!
  exec 9>fifo
  wait_for 60 grep -q '^ready' out
  adds_up "$(awk '{ print $2 }' out)" 'resident, unprivileged'
  equal 4 "$(part threads)" threads
  exec 9>&-
  wait $front
  matches '^heaptap:   resident [0-9.]+ MiB, [0-9.]+ s before the end:$' err
}
