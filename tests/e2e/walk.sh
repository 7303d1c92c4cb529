# SPDX-License-Identifier: Apache-2.0
# Stacks that the hook walks itself (proto/walk.h): right, most of them, and compared with dumps.
# timeout: 240

# counts PROFILE: sets taken, walked, compared and wrong
counts() {
  comment_of "$1" >comments
  taken=$(sed -n 's/^samples: \([0-9]*\) taken.*/\1/p' comments)
  walked=$(sed -n 's/^samples: .*walked by the hook \([0-9]*\).*/\1/p' comments)
  compared=$(sed -n 's/^samples: .*compared \([0-9]*\), wrong [0-9]*).*/\1/p' comments)
  wrong=$(sed -n 's/^samples: .*compared [0-9]*, wrong \([0-9]*\)).*/\1/p' comments)
  echo "$1: taken $taken, walked ${walked:=0}, compared ${compared:=0}, wrong ${wrong:=none}"
}

# all_right PROFILE SHARE: nothing was wrong, and at least so many of a hundred samples were walked
all_right() {
  profile_check "$1"
  counts "$1"
  equal 0 "$wrong" "$1: compared $compared, wrong"
  at_least $((taken * $2 / 100)) "$walked" "$1: walked, of $taken"
}

# Exact with threads and with the forked children of a program that knows what it allocates.
test_truth() {
  record -q -b walk -p 1 -o x.pb.gz "$targets/truth" truth.tsv 40 2000 4
  profile_check x.pb.gz
  "$readers/oracle" -func x.pb.gz >functions
  python3 "$top/tests/compare_truth.py" truth.tsv 1 <functions || fail 'the profile does not agree with the truth'
  counts x.pb.gz
  at_least $((taken / 2)) "$walked" "walked, of $taken"
}

test_sampled_truth() {
  record -q -b walk -p 4K -o x.pb.gz "$targets/truth" truth.tsv 200 1000
  profile_check x.pb.gz
  "$readers/oracle" -func x.pb.gz >functions
  python3 "$top/tests/compare_truth.py" truth.tsv 4096 <functions || fail 'the profile does not agree with the truth'
  counts x.pb.gz
  at_least 1 "$walked" 'walked'
}

# Each of 8192 stacks is dumped once, or again if there was no buffer for it; what follows needs no dump.
test_a_flood_loses_no_stack() {
  for attempt in 1 2 3 4 5; do # until the sampler has learned the rows in time, beside a load
    record -q -b walk -p 1 -o x.pb.gz "$targets/walk_flood" >allocations
    counts x.pb.gz
    grep -qE '^samples: [0-9]+ taken, 0 lost stacks' comments && break
  done
  matches '^samples: [0-9]+ taken, 0 lost stacks' comments
  all_right x.pb.gz 90
  reached_exactly x.pb.gz allocate "alloc_objects $(cat allocations)"
}

# Every walked stack is dumped as well: by the kernel, by a copy.
test_each_is_compared() {
  for backend in auto walk; do
    record -q -b $backend -p 1K --compare-walks 1 -o "$backend.pb.gz" "$targets/capture_stress" 2 8
    all_right "$backend.pb.gz" 50
  done
}

test_each_is_compared_in_real_programs() {
  record -q -p 1K --compare-walks 1 -o sqlite.pb.gz sqlite3 :memory: \
    "create table t (a); with recursive c(x) as (select 1 union all select x + 1 from c where x < 30000) insert into t select 'name' || x from c; select count(*) from t where a like '%9%' group by length(a);" >out
  all_right sqlite.pb.gz 30
  record -q -p 4K --compare-walks 1 -o python.pb.gz python3 -c 'import json
for i in range(300): json.loads(json.dumps({str(k): [k] * 5 for k in range(200)}))'
  all_right python.pb.gz 30
  printf '#include <map>\n#include <string>\nint main() { std::map<std::string, int> m; return m["x"]; }\n' >t.cc
  record -q -p 16K --compare-walks 1 -o 'cc-%e.pb.gz' g++ -O1 -c t.cc
  all_right cc-cc1plus.pb.gz 10
}

# two_libraries: builds alpha.so and beta.so, which are mapped at one address if one follows the other, and host, which lets
# them: `host alpha.so beta.so [wait]`, with dlclose by an address that was looked up at the start if it waits for a line.
two_libraries() {
  for name in alpha beta; do
    cat >$name.c <<C
#include <stdlib.h>
__attribute__((noinline)) void *${name}_inner(size_t size) { void *block = malloc(size); asm volatile("" : "+r"(block)); return block; }
void *work(size_t size) { void *block = ${name}_inner(size); asm volatile("" : "+r"(block)); return block; }
C
    gcc -O1 -g -fno-builtin -shared -fPIC -Wl,--build-id -o $name.so $name.c
  done
  cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void *host_inner(size_t size) { void *block = malloc(size); asm volatile("" : "+r"(block)); return block; }
int main(int argc, char **argv) {
  int (*close_library)(void *) = argc > 3 ? (int (*)(void *))dlsym(RTLD_DEFAULT, "dlclose") : dlclose;
  char line[16];
  if (argc > 3) puts("ready"), fflush(stdout);
  if (argc > 3 && !fgets(line, sizeof(line), stdin)) return 1;
  for (int round = 0; round < 40; round++) {
    void *library = dlopen(argv[1 + round % 2], RTLD_NOW | RTLD_LOCAL);
    void *(*work)(size_t) = (void *(*)(size_t))dlsym(library, "work");
    for (int i = 0; i < 200; i++) { /* in the course of it the sampler learns */
      free(work(100 + (size_t)(round % 2)));
      free(host_inner(100));
      if (i % 20 == 0) usleep(5000);
    }
    if (round < 4) printf("%p\n", (void *)work);
    close_library(library);
  }
  return 0;
}
C
  gcc -O1 -g -fno-builtin -o host host.c -ldl
}

# Libraries that follow each other at one address: the rows of the one before are void before it is unmapped.
test_libraries_in_one_place() {
  two_libraries
  need_root
  for attempt in 1 2 3 4 5; do # until no stack is lost beside a load
    record -q -p 1 --compare-walks 1 -o x.pb.gz ./host ./alpha.so ./beta.so >where
    comment_of x.pb.gz | grep -qE '^samples: [0-9]+ taken, 0 lost stacks' && break
  done
  equal 1 "$(sort -u where | wc -l)" "addresses of work() (this system's loader does not use an address again)"
  all_right x.pb.gz 10
  for name in alpha beta; do
    reached_exactly x.pb.gz ${name}_inner 'alloc_objects 4000'
  done
}

# Attached to, it calls dlclose past every hook: its own stacks are walked, those in libraries never.
test_libraries_of_an_attached_process() {
  . "$HEAPTAP_TOP/tests/attach.sh"
  two_libraries
  need_root
  running ./host ./alpha.so ./beta.so wait
  attach -p 1 --compare-walks 1
  echo >&7
  finish
  wait "$sampler" || fail "record ended with $?: $(cat log)"
  profile=$(only p/heaptap.host."$target".exit.pb.gz)
  all_right "$profile" 30
  at_most 60 $((100 * walked / taken)) '% walked'
  for name in alpha beta; do
    reached_exactly "$profile" ${name}_inner 'alloc_objects 4000'
  done
  reached_exactly "$profile" host_inner 'alloc_objects 8000'
}

# A program that changes what it has been taught: its own profile says that it is wrong.
test_forged_numbers_are_noticed() {
  record -q -b walk -p 1 --compare-walks 1 -o x.pb.gz "$targets/walk_forger" || fail "status $?"
  profile_check x.pb.gz
  counts x.pb.gz
  at_least 1 "$wrong" 'comparisons that failed'
}

# No option that needs a record for each sample is served by walking.
test_labels_that_need_records() {
  for labels in thread size; do
    record -q -p 1K --labels $labels -o x.pb.gz "$targets/truth" truth.tsv 20 1000
    profile_check x.pb.gz
    counts x.pb.gz
    equal 0 "$walked" "walked with --labels $labels"
    equal 0 "$(status_of "$heaptap" record -b walk --labels $labels -o none.pb.gz true)"
    matches '^heaptap: backend walk is not available: --labels thread and size need a record of each sample$' err
  done
  for labels in age lifetime backend; do
    record -q -p 1K --labels $labels -o x.pb.gz "$targets/truth" truth.tsv 200 1000
    profile_check x.pb.gz
    counts x.pb.gz
    at_least 1 "$walked" "walked with --labels $labels"
  done
}

# In a program that is not Go's no memory is known to be a goroutine's, whatever it maps: a forged row with Go's rule leads nowhere.
test_no_goroutines_without_go() {
  cat >maps.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int count, char **arguments) {
  char *memory = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), line[4096];
  uintptr_t base = 0;
  mmap(memory, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  FILE *maps = fopen("/proc/self/maps", "r");
  while (!base && fgets(line, sizeof(line), maps))
    if (strstr(line, "libheaptap.so")) base = strtoul(line, NULL, 16);
  printf("known: %lu\n", (unsigned long)*(uintptr_t *)(base + strtoul(arguments[1], NULL, 16)));
  return 0;
}
C
  gcc -O1 -o maps maps.c
  record -q -p 1 -o x.pb.gz ./maps "$(nm "$HEAPTAP_BUILD/libheaptap.so" | awk '$3 == "goroutine_memory_known" { print $1 }')" >out
  matches '^known: 0$' out
}

# Go's calls of C leave the goroutine's stack, and the hook goes on there. What it cannot follow says so: the first
# samples of a stack, calls back from C to Go, and dumps.
test_go_calls_c() {
  need_x86_64 'the way back to a goroutine'
  cat >calls.go <<'GO'
package main

/*
#include <stdlib.h>
extern void goBack(int k);
static void *volatile last;
__attribute__((noinline)) static void c_leaf(int k) { while (k--) last = malloc(100); last = 0; }
__attribute__((noinline)) static void c_calls_back(int k) { goBack(k); c_leaf(1); }
*/
import "C"
import "sync"

//go:noinline
func deep(n, k int) int { if n > 0 { return deep(n-1, k) + 1 }; C.c_leaf(C.int(k)); return n }

//go:noinline
func one(k int) int { return deep(3, k) + 1 }

//go:noinline
func two(k int) int { return deep(30, k) + 1 }

//export goBack
func goBack(k C.int) { inBack(int(k)) }

//go:noinline
func inBack(k int) { var room [9000]int; room[k] = deep(2, k); sink = room[k] }

var sink int

func main() {
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			for i := 0; i < 500; i++ { one(10); two(20) }
			for i := 0; i < 50; i++ { C.c_calls_back(10) }
			all.Done()
		}()
	}
	all.Wait()
}
GO
  HOME=$PWD CGO_ENABLED=1 nice go build -o calls calls.go 2>build || skip "no cgo: $(head -1 build)"
  record -q -b walk -p 1 -o x.pb.gz ./calls
  profile_check x.pb.gz
  counts x.pb.gz
  ! grep -E 'wrong [1-9]' comments || fail 'walked and dumped differ'
  # 20,000 blocks of c_leaf by one, 40,000 by two; no more are theirs
  local one two objects
  objects() {
    go tool pprof -traces -sample_index=alloc_objects -focus "^main\\.$1\$" x.pb.gz 2>traces.err |
      awk '/^-+\+/ { next_is = 1; next } next_is && $1 ~ /^[0-9]+$/ { sum += $1; next_is = 0 } END { print sum + 0 }'
  }
  one=$(objects one) two=$(objects two)
  at_most 20000 "$one" 'objects by one'
  at_most 40000 "$two" 'objects by two'
  at_least 10000 "$one" 'objects by one'
  at_least 20000 "$two" 'objects by two'
  go tool pprof -traces x.pb.gz >traces
  matches '^ *runtime\.goexit$' traces
  ! grep -B1 'unknown mapping' traces | grep 'runtime\.asmcgocall' || fail 'the marker of a call from Go'
  record -q -b copy -p 1K -o y.pb.gz ./calls
  go tool pprof -traces y.pb.gz >traces
  matches 'stack switched' traces
  ! grep -q 'main\.one' traces || fail 'no copy has the goroutine'
}
