# SPDX-License-Identifier: Apache-2.0
# Processes come, change and go in every way; the profile of each tells what that process did (capture_process.c).
# timeout: 240

process=$targets/capture_process

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

# taken PROFILE TYPE [REGEX]: what went through take()
taken() {
  "$readers/oracle" -reach "${3:-^take\$}" "$1" | awk -F '\t' -v type="$2" '$1 == "reach" && $2 == type { print $3 }'
}

# profile_of PID
profile_of() {
  only heaptap.capture_process."$1".exit.pb.gz
}

# agrees PID OBJECTS BYTES INUSE: the profile of that process at period 1 says just that
agrees() {
  profile=$(profile_of "$1")
  profile_check "$profile"
  reached_exactly "$profile" take "alloc_objects $2" "alloc_space $3" "inuse_space $4"
}

# exact MODE [ARGUMENT...]: at period 1 every process' profile agrees with what the process says
exact() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$process" "$@" >truth 2>err || fail "$backend: status $?: $(cat err)"
    [ -s truth ] || fail "$backend: no truth"
    while read -r _ pid objects bytes inuse; do
      agrees "$pid" "$objects" "$bytes" "$inuse"
    done <truth
  done
}

# A child that has its parent's memory and was there before the parent's breakpoints were may cost its stack, no more.
test_vfork() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$process" vfork >truth
    read -r _ pid objects bytes inuse <truth
    profile=$(profile_of "$pid")
    profile_check "$profile"
    equal "$bytes" "$(total_of "$profile" inuse_space)" "$backend: bytes in use"
    at_least $((objects - 1)) "$(taken "$profile" alloc_objects '^(take|\[lost stack\])$')" "$backend: objects with stacks"
  done
}

test_posix_spawn_and_system() { exact spawn; }
test_every_descriptor_closed_then_replaced() { exact closed; }
test_destructors_and_atexit() { exact destructors; }
test_limits_of_nothing() { exact limits; }

test_fork() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$process" fork >truth
    parent=$(tail -n 1 truth | cut -d' ' -f2)
    equal 4 "$(wc -l <truth)"
    while read -r _ pid objects bytes inuse; do
      # A child has half of the million bytes that it inherited, besides its own.
      [ "$pid" = "$parent" ] || inuse=$((inuse + 500000))
      agrees "$pid" "$objects" "$bytes" "$inuse"
      [ "$pid" = "$parent" ] || equal 500000 \
        "$(go tool pprof -top -unit=B -tagfocus=inherited "$(profile_of "$pid")" 2>/dev/null | awk '$NF == "take" { print $4 + 0 }')" 'labelled inherited'
    done <truth
  done
}

# 40 children that allocate the same 64 x 4 KiB: at a period of 64 KiB their sample counts and places vary.
test_siblings_sample_independently() {
  record -q -b copy -p 64K --min-samples 1 "$process" siblings >truth
  sum=0 different=0
  for profile in heaptap.*.exit.pb.gz; do
    profile_check "$profile"
    comment_of "$profile" | sed -n 's/^samples: \([0-9]*\) taken.*/\1/p'
  done | sort -n | uniq -c >counts
  at_least 4 "$(wc -l <counts)" 'different numbers of samples'
  # Without a new interval in each child, all took their first sample at the same allocation: 40 times the same.
  awk '{ if ($1 > 25) exit 1 }' counts || fail "the children sampled in step: $(cat counts)"
}

test_raw_clone() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$process" clone >truth
    profile_check heaptap.*.pb.gz
    # The number of a child that had ended before the sampler looked is not known; it is not its parent's.
    read -r _ pid objects bytes inuse <truth
    profile=$(only heaptap.capture_process."$pid".exit*.pb.gz)
    reached_exactly "$profile" take "alloc_objects $objects" "alloc_space $bytes" "inuse_space $inuse"
    equal 6 "$(find . -name 'heaptap.capture_process.*.exit*.pb.gz' | wc -l)" "$backend: profiles"
  done
}

test_exec_chain() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$process" exec 5 "$process" >truth
    profile_check heaptap.*.pb.gz
    equal 6 "$(find . -name 'heaptap.capture_process.*.exit*.pb.gz' | wc -l)" "$backend: profiles"
    for profile in heaptap.*.pb.gz; do
      reached_exactly "$profile" take 'alloc_objects 20'
    done
  done
}

test_daemon_outlives_command() {
  for backend in $(backends); do
    rm -f heaptap.* truth
    record -q -b "$backend" -p 1 "$process" daemon "$PWD/truth"
    wait_for 20 test -s truth
    read -r _ pid objects bytes inuse <truth
    wait_for 20 test -e "heaptap.capture_process.$pid.exit.pb.gz"
    agrees "$pid" "$objects" "$bytes" "$((inuse + 100))"
  done
}

# Its parent, which has inherited too, is gone when it takes its first sample, and so it gets that one's place in the
# region. It drops the 10 blocks of its parent, and 40 of 100 of that one's.
test_child_of_a_parent_that_is_gone() {
  record -q -b copy -p 1 "$targets/daemon_steps" hold 100 1000 fork hold 10 1000 leave await go drop 50 hold 1 500
  ended() { [ "$(printf '%s\n' heaptap.daemon_steps.*.exit.pb.gz | wc -l)" -ge "$1" ]; }
  wait_for 20 ended 2
  touch go
  wait_for 20 ended 3
  for profile in heaptap.daemon_steps.*.exit.pb.gz; do
    profile_check "$profile"
    echo "$(total_of "$profile" inuse_objects) $(total_of "$profile" inuse_space)"
  done | sort -n | tr '\n' ' ' >inuse
  equal '61 60500 100 100000 110 110000 ' "$(cat inuse)" 'in use: child, first process, parent'
}

test_ten_thousand_threads() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 4K "$process" threads 10000 >truth
    read -r _ pid objects bytes inuse <truth
    profile=$(profile_of "$pid")
    profile_check "$profile"
    # 3 MB in 20000 blocks: a standard error of 3.6 % of the bytes at this period.
    at_least $((bytes * 80 / 100)) "$(taken "$profile" alloc_space '^(take|\[lost stack\])$')" "$backend: bytes"
    at_least "$(taken "$profile" alloc_space)" $((bytes * 120 / 100)) "$backend: bytes, upper bound"
  done
}

test_plugins() {
  cat >plugin.c <<'C'
#include <stdlib.h>
void *plugin_take(size_t size) { return malloc(size); }
void plugin_free(void *block) { free(block); }
C
  gcc -shared -fPIC -o plugin.so plugin.c
  exact plugin ./plugin.so now
  rm -f heaptap.*
  # Half of the frees are not seen; each address is used again, and then the stale entry is found.
  record -q -b copy -p 1 "$process" plugin ./plugin.so deepbind >truth
  read -r _ pid objects bytes inuse <truth
  profile=$(profile_of "$pid")
  profile_check "$profile"
  reached_exactly "$profile" take "alloc_objects $objects"
  at_least "$(taken "$profile" inuse_space)" 10000 'stale bytes'
  comment_of "$profile" | grep -q 'free not seen' || fail 'unseen frees are not counted'
}

test_undumpable() {
  exact dumpable
  rm -f heaptap.*
  stage capture_process
  mkdir -m 777 place
  cd place
  unprivileged "$heaptap" record -q -b copy -p 1 "$targets/capture_process" dumpable >truth
  read -r _ pid objects bytes inuse <truth
  agrees "$pid" "$objects" "$bytes" "$inuse"
}

test_setuid() {
  need_root
  chmod 755 .
  exact_with_inherited setuid 60000
}

test_chroot() {
  need_root
  mkdir root
  exact_with_inherited chroot 60000 root
}

# exact_with_inherited MODE BYTES [ARGUMENT...]: a child, which reports first, has inherited BYTES
exact_with_inherited() {
  local mode=$1 more=$2
  shift 2
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$process" "$mode" "$@" >truth 2>err || fail "$backend: status $?: $(cat err)"
    { read -r _ pid objects bytes inuse && agrees "$pid" "$objects" "$bytes" "$((inuse + more))"; } <truth
    read -r _ pid objects bytes inuse <<<"$(tail -n 1 truth)"
    agrees "$pid" "$objects" "$bytes" "$inuse"
  done
}

test_fork_among_busy_threads() {
  for backend in $(backends); do
    record -q -b "$backend" -p 4K -o "$backend/" "$process" busyfork 30 >truth || fail "$backend: status $?"
    profile_check "$backend"/*.pb.gz
  done
}

# 1000 children, 100 at once; at this period about one in four has anything to tell.
test_fork_storm() {
  for round in $(seq "${REPEAT:-1}"); do
    rm -rf storm
    fork_storm
  done
}

fork_storm() {
  record -q -p 256K --min-samples 1 -o storm/ "$process" storm 1000 100 >truth || fail "status $?"
  at_least 50 "$(find storm -name '*.exit.pb.gz' | wc -l)" profiles
  profile_check "$(find storm -name "*.$(cut -d' ' -f2 truth).exit.pb.gz")" "$(find storm -name '*.exit.pb.gz' | head -n 1)"
}

test_address_space_limit() {
  # Too little to take 150 MB of it for ourselves: the program runs, unprofiled.
  record -q -b copy -p 4K -o small/ sh -c "ulimit -v 400000; exec $process threads 8" >truth || fail "status $?"
  record -q -b copy -p 1 sh -c "ulimit -v 2000000; exec $process spawn" >truth || fail "status $?"
  read -r _ pid objects bytes inuse <truth
  agrees "$pid" "$objects" "$bytes" "$inuse"
}

test_seven_descriptors() {
  record -q -b copy -p 1 sh -c "ulimit -n 7; exec $process spawn" >truth
  read -r _ pid objects bytes inuse <truth
  agrees "$pid" "$objects" "$bytes" "$inuse"
}

test_five_megabytes_of_environment() {
  ulimit -s 65536 2>/dev/null || skip 'the stack limit cannot be raised'
  text=$(head -c 120000 /dev/zero | tr '\0' x)
  (
    for i in $(seq 43); do export "LARGE_$i=$text"; done
    record -q -b copy -p 1 "$process" vfork >truth
  ) || fail "status $?"
  read -r _ pid objects bytes inuse <truth
  agrees "$pid" "$objects" "$bytes" "$inuse"
}

# A program whose own malloc comes before ours in the search order runs as ever.
test_program_with_its_own_malloc() {
  cat >own.c <<'C'
#include <stddef.h>
#include <stdio.h>
#include <string.h>
static _Alignas(16) char pool[64 << 20];
static size_t used, calls;
void *malloc(size_t size) { calls++; size = (size + 31) & ~15ul; used += size; *(size_t *)(pool + used - size) = size; return pool + used - size + 16; }
void free(void *block) { }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) { void *n = malloc(size); if (block) { size_t old = ((size_t *)block)[-2] - 16; memcpy(n, block, old < size ? old : size); } return n; }
int main(void) { char *text = strdup("own"); for (int i = 0; i < 1000; i++) free(malloc(100)); return strcmp(text, "own") || calls < 1000; }
C
  gcc -O1 -fno-builtin -w -o own own.c
  for backend in $(backends); do
    record -q -b "$backend" -p 1 -o "$backend/" ./own || fail "$backend: status $?"
    profile_check "$backend"/*.pb.gz
  done
}
