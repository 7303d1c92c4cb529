# SPDX-License-Identifier: Apache-2.0
# Addresses that are used again: libraries that follow each other in one place, code made at run time where one has been.

# Three libraries, so alike that the kernel puts each where the one before it was; each keeps a block per round.
make_plugins() {
  for name in alpha beta gamma; do
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
#include <string.h>
#include <sys/mman.h>
/* rounds, "map" or "", libraries: prints where work() was, and waits for a line of input after the first round */
static void *kept[100000];
int main(int argc, char **argv) {
  int at = 0;
  for (int round = 0; round < atoi(argv[1]); round++) {
    for (int i = 3; i < argc; i++) {
      void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
      if (!library) { puts(dlerror()); return 1; }
      void *(*work)(size_t) = (void *(*)(size_t))dlsym(library, "work");
      if (round < 2) printf("%p\n", (void *)work);
      kept[at++] = work(100 * (size_t)(i - 2));
      free(work(1000));
      dlclose(library);
      if (strcmp(argv[2], "map")) continue;
#ifdef __x86_64__
      /* Code made at run time: push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret */
      static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
      char *page = (char *)((size_t)work & ~(size_t)4095);
      page = mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (page == MAP_FAILED) { perror("mmap"); return 1; }
      char *entry = page + ((size_t)work & 4095);
      memcpy(entry, code, sizeof(code));
      kept[at++] = ((void *(*)(size_t, void *(*)(size_t)))entry)(77, malloc);
      munmap(page, 4096);
#endif
    }
    if (round == 0) { fflush(stdout); getchar(); }
  }
  return 0;
}
C
  gcc -O1 -g -fno-builtin -o host host.c -ldl
}

# by_records BACKEND FILE OPTIONS... COMMAND...: all of its stacks, and each with what was mapped then: only the kernel's
# records tell, so it is for the backends whose stacks are in one row with those. Input is a line, output goes to ./where.
by_records() {
  need_root
  local backend=$1 file=$2 attempt
  shift 2
  for attempt in $(seq 20); do
    echo | record -q -b $backend -p 1 -o "$file" "$@" >where 2>err || { cat err >&2; fail "record: status $?"; }
    comment_of "$file" >comments
    grep -q 'backend uprobe' comments || skip 'no uprobes here'
    ! grep -qE '^samples: ([0-9]+) taken, 0 lost stacks, ' comments || break
  done
  matches '^samples: [0-9]+ taken, 0 lost stacks, ' comments
  at_one_address where
  profile_check "$file"
  apart "$file"
}

by_uprobe() {
  by_records uprobe "$@"
  matches '^samples: [0-9]+ taken, 0 lost stacks, by uprobe [0-9]+(, frames guessed [0-9]+)?$' comments
}

# auto, which at such a period has the hook copy: these wait for the records of mappings before them.
by_auto() {
  by_records auto "$@"
  matches '^samples: .*copied by the hook [0-9]+( \(of all its processes compared [0-9]+, wrong 0\))?$' comments
}

# The libraries were at one address indeed, else nothing is shown here.
at_one_address() {
  equal 1 "$(sort -u "$1" | wc -l)" "addresses of work() in $1 (this system's loader does not use an address again)"
}

# Mappings that lie on each other, and locations at one address: none in the whole profile.
apart() {
  go tool pprof -raw "$1" >raw 2>/dev/null
  awk '/^Mappings/ { on = 1; next } on && $2 ~ /^0x.*\/0x/ { split($2, a, "/"); print a[1], a[2] }' raw |
    python3 -c '
import sys
ranges = sorted(tuple(int(x, 16) for x in line.split()) for line in sys.stdin)
assert len(ranges) > 3, ranges
for a, b in zip(ranges, ranges[1:]):
    assert a[1] <= b[0], [hex(x) for x in a + b]'
  awk '/^Locations/ { on = 1; next } /^Mappings/ { on = 0 } on && $1 ~ /^[0-9]+:$/ { print $2 }' raw | sort | uniq -d >twice
  [ ! -s twice ] || fail "locations at one address: $(cat twice)"
}

libraries_in_one_place() {
  make_plugins
  $1 x.pb.gz ./host 100 '' ./alpha.so ./beta.so ./gamma.so
  bytes=100
  for name in alpha beta gamma; do
    "$readers/oracle" -reach "^${name}_inner\$" x.pb.gz | awk -F '\t' '$1 == "reach" { print $2, $3 }' >got
    matches '^alloc_objects 200$' got
    matches "^alloc_space $((100 * bytes + 100 * 1000))\$" got
    matches '^inuse_objects 100$' got
    matches "^inuse_space $((100 * bytes))\$" got
    pprof_top x.pb.gz -nodefraction=0 -sample_index=inuse_space >top
    matches " ${name}_inner\$" top
    go tool pprof -list "^${name}_inner\$" x.pb.gz >list 2>/dev/null
    matches "ROUTINE =+ ${name}_inner in .*/$name\.c\$" list
    bytes=$((bytes + 100))
  done
}

test_libraries_in_one_place() { libraries_in_one_place by_uprobe; }
test_libraries_in_one_place_copied() { libraries_in_one_place by_auto; }

# Backends that copy have no such records, and the names of what is there when they look. Valid, at least.
test_every_backend_is_valid() {
  make_plugins
  for backend in copy breakpoint; do
    echo | record -q -b $backend -p 1 -o x.pb.gz ./host 100 '' ./alpha.so ./beta.so ./gamma.so >where
    profile_check x.pb.gz
    apart x.pb.gz
  done
}

# The addresses of unnamed frames are as good for who names them later: by mapping, address - start + offset in the file.
test_offsets_of_unnamed_frames() {
  make_plugins
  by_uprobe x.pb.gz --symbols raw ./host 10 '' ./alpha.so ./beta.so ./gamma.so
  for name in alpha beta gamma; do
    nm $name.so | awk -v name=${name}_inner '$3 == name { print $1 }' >symbol
    python3 - raw $name "$(cat symbol)" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
symbol = int(sys.argv[3], 16)
mappings = {m[0]: [int(x, 16) for x in m[1:4]] for m in
            re.findall(r'^(\d+): (0x[0-9a-f]+)/(0x[0-9a-f]+)/(0x[0-9a-f]+) \S*/%s\.so' % sys.argv[2], text, re.M)}
assert mappings, text
offsets = [int(address, 16) - mappings[number][0] + mappings[number][2] for address, number in
           re.findall(r'^ +\d+: (0x[0-9a-f]+) M=(\d+)', text, re.M) if number in mappings]
# The text of these is at the same place in the file and in memory.
assert any(symbol <= offset < symbol + 32 for offset in offsets), (symbol, offsets)
PY
  done
}

# What a snapshot has said of an address, the next one does not take back: readers that subtract do so by address.
test_addresses_stay() {
  need_root
  make_plugins
  mkfifo go
  record -q -b uprobe -p 1 -o x.%n.pb.gz -i 20ms ./host 3 '' ./alpha.so ./beta.so ./gamma.so <go >where &
  recorder=$!
  exec 9>go
  wait_for 20 sh -c 'grep -c 0x where | grep -qx 3'
  seen=$(ls x.*.pb.gz 2>/dev/null | wc -l)
  wait_for 20 sh -c "[ \$(ls x.*.pb.gz 2>/dev/null | wc -l) -ge $((seen + 3)) ]"
  echo >&9
  exec 9>&-
  wait $recorder
  comment_of "$(ls x.*.pb.gz | tail -n 1)" >comments
  grep -q 'backend uprobe' comments || skip 'no uprobes here'
  for profile in x.*.pb.gz; do
    profile_check "$profile"
    apart "$profile"
    for name in alpha beta gamma; do
      awk -v name=" ${name}_inner " 'index($0, name) { print name, $2 }' raw
    done >>said
  done
  equal 3 "$(sort -u said | wc -l)" 'addresses of three functions'
}

test_code_made_at_run_time() {
  [ "$(uname -m)" = x86_64 ] || skip 'machine code for x86-64 only'
  make_plugins
  by_uprobe x.pb.gz ./host 50 map ./alpha.so ./beta.so
  for name in alpha_inner beta_inner '.jit.'; do
    "$readers/oracle" -reach "^$name\$" x.pb.gz | awk -F '\t' '$1 == "reach" { print $2, $3 }' >got
    if [ $name = .jit. ]; then matches '^inuse_space 7700$' got; else matches '^inuse_objects 50$' got; fi
  done
}

# Programs at one address, each with libraries that were moved: merged, nobody has another's address either.
test_merged() {
  need_root
  make_plugins
  for name in one two; do
    sed "s/^int main/__attribute__((noinline)) void *$name(void) { void *p = malloc(500); asm volatile(\"\" : \"+r\"(p)); return p; }\nint main/
      s/^  int at = 0;/  int at = 0; kept[99999] = $name();/" host.c >$name.c
    gcc -O1 -g -fno-builtin -no-pie -o $name $name.c -ldl
  done
  by_uprobe one.pb.gz ./one 10 '' ./alpha.so ./beta.so
  by_uprobe two.pb.gz ./two 10 map ./gamma.so ./beta.so ./alpha.so
  "$heaptap" merge -o both.pb.gz one.pb.gz two.pb.gz
  profile_check both.pb.gz
  apart both.pb.gz
  while read -r function objects; do
    "$readers/oracle" -reach "^$function\$" both.pb.gz | awk -F '\t' '$1 == "reach" { print $2, $3 }' >got
    matches "^inuse_objects $objects\$" got
  done <<'END'
one 1
two 1
alpha_inner 20
beta_inner 20
gamma_inner 10
END
  # Again with itself: the same places, twice the numbers.
  "$heaptap" merge -o twice.pb.gz both.pb.gz both.pb.gz
  go tool pprof -raw twice.pb.gz 2>/dev/null | awk '/^Locations/ { on = 1 } on' >twice
  awk '/^Locations/ { on = 1 } on' raw | diff - twice >changes || { cat changes >&2; fail 'merged with itself it has other places'; }
}
