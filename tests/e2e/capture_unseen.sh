# SPDX-License-Identifier: Apache-2.0
# What the hook cannot see is said in the profile, not passed over.

library_of() {
  ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

test_program_with_its_own_malloc_is_told() {
  cat >own.c <<'C'
#include <stddef.h>
static _Alignas(16) char pool[1 << 24];
static size_t used;
void *malloc(size_t size) { size = (size + 15) & ~15ul; used += size; return pool + used - size; }
void free(void *block) { }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) { return malloc(size); }
int main(void) { for (int i = 0; i < 1000; i++) free(malloc(100)); return 0; }
C
  gcc -O1 -fno-builtin -w -o own own.c
  record -b copy -p 1 -o x.pb.gz ./own 2>err
  profile_check x.pb.gz
  comment_of x.pb.gz | grep -q '^not seen: the program has a malloc of its own' || fail 'no comment'
  matches 'not seen: the program has a malloc' err
}

# The plug-in is bound to a libc of its own, before which no library is preloaded.
test_dlmopen_is_told() {
  cat >plug.c <<'C'
#include <stdlib.h>
void *volatile kept;
void plug(int count) { while (count--) kept = malloc(100); }
C
  cat >host.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
void *volatile kept;
int main(int count, char **arguments)
{
	void *handle = arguments[1] ? dlmopen(LM_ID_NEWLM, "./plug.so", RTLD_NOW) : dlopen("./plug.so", RTLD_NOW);
	void (*plug)(int) = (void (*)(int))dlsym(handle, "plug");

	if (!plug)
		return 1;
	plug(900);
	for (int i = 0; i < 100; i++)
		kept = malloc(1000);
	usleep(300000);
	for (int i = 0; i < 100; i++)
		kept = malloc(1000);
	return 0;
}
C
  gcc -w -fno-builtin -shared -fPIC -o plug.so plug.c
  gcc -w -fno-builtin -o host host.c -ldl
  local what='ot seen: what is allocated by plug-ins with a libc of their own'
  record -i 100ms -p 1 -o x.pb.gz ./host new 2>err
  profile_check x.pb.gz
  matches "$what" err
  "$heaptap" report x.pb.gz >report
  matches "$what" report
  record -i 100ms -p 1 -o y.pb.gz ./host 2>err
  ! grep "$what" err || fail 'it has one libc'
}

# 32-bit programs run as they would, and are named. (The loader of a dynamic one says that it does not take the library, if a
# process that has the library executes it. COMMAND's says nothing.)
test_32_bit() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  printf '.globl _start\n_start: mov $1, %%eax\nmov $42, %%ebx\nint $0x80\n' >program.s
  gcc -m32 -nostdlib -static -o program program.s 2>/dev/null || skip 'gcc makes no 32-bit programs'
  ./program && status=0 || status=$?
  [ $status = 42 ] || skip 'this kernel runs no 32-bit programs'
  equal 1 "$(status_of "$heaptap" doctor ./program)"
  matches '^bad +./program is built for another architecture: the library cannot be loaded, so nothing of it is seen$' out
  equal 42 "$(status_of record -o x.pb.gz ./program)"
  matches 'program is built for another architecture' err
  equal 42 "$(status_of record -p 1 -o profiles/ sh -c 'exec ./program')"
  matches 'program, which is not profiled: it is built for another architecture|executed .*program, which is not profiled' err
  gcc -m32 -nostdlib -pie -Wl,-dynamic-linker,/lib/ld-linux.so.2 -o dynamic program.s 2>/dev/null && ./dynamic && status=0 || status=$?
  [ $status = 42 ] || skip 'no loader of 32-bit programs'
  equal 42 "$(status_of record -o x.pb.gz ./dynamic)"
  ! grep -q '^ERROR' err || fail "its loader complains: $(cat err)"
  matches '^heaptap: ./dynamic is built for another architecture' err
}

# ---- an allocator inside the program

# inside: 24 MiB held, by jemalloc's own functions under the names that Rust's tikv-jemallocator gives them.
allocator_inside() {
  local archive
  archive=$(gcc -print-file-name=libjemalloc_pic.a)
  nm --defined-only "$archive" 2>/dev/null |
    awk 'NF == 3 && $2 == "T" && $3 !~ /^(je_|_Z)/ { print $3, "_rjem_" $3 }' | sort -u >names
  grep -q '^mallocx ' names || fail 'no functions to rename'
  objcopy --redefine-syms=names "$archive" prefixed.a
  ar d prefixed.a "$(ar t prefixed.a | grep cpp)" # its operators would be the program's
  cat >inside.c <<'C'
#include <stddef.h>
#include <string.h>
#include <unistd.h>
void *_rjem_malloc(size_t size);
static char *held[24];
__attribute__((noinline)) static void hold(void)
{
	for (int i = 0; i < 24; i++) memset(held[i] = _rjem_malloc(1 << 20), 1, 1 << 20);
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	char byte;
	int before = argc > 1;
	if (before && (write(1, "a", 1) != 1 || read(0, &byte, 1) != 1)) return 1;
	hold();
	for (int i = 0; i < 10 && argc < 3; i++) usleep(100000);
	return argc > 2 ? pause() : 0;
}
C
  gcc -O1 -g -w -o inside inside.c prefixed.a -lm -lpthread
}

test_an_allocator_inside_is_told() {
  allocator_inside
  record -o out/ ./inside 2>err
  what='of the allocator inside inside \(_rjem_[a-z]+\), or other mmap; --mmap shows who makes it grow, linking it as a shared library shows each block'
  matches '^heaptap: not seen: what is allocated by the allocator inside inside \(_rjem_[a-z]+\); --mmap shows' err
  matches "^heaptap:   not seen: [23][0-9]\.[0-9] MiB are $what\$" err
  matches '^heaptap:   no allocation was sampled$' err
  ! grep 'less than about\|smaller period' err || fail 'a bound, or the wrong remedy'
  profile=$(only out/*.exit.pb.gz)
  profile_check "$profile"
  "$heaptap" report "$profile" >report
  matches '^No allocation was sampled\.$' report
  matches '^Not seen: [23][0-9]\.[0-9] MiB are of the allocator inside inside' report
  # what it advises
  record -q --mmap -p 64K -o mmap.pb.gz ./inside
  at_least $((20 << 20)) "$("$readers/oracle" -reach '^hold$' mmap.pb.gz | awk -F '\t' '$2 == "alloc_space" { print int($3) }')" 'of hold, in mappings'
}

test_an_allocator_inside_is_told_of_what_runs() {
  [ "$(id -u)" = 0 ] && [ "$(uname -m)" = x86_64 ] || skip 'attaching needs root and x86-64'
  allocator_inside
  mkfifo go
  ./inside ask stay <go >asked &
  target=$!
  exec 7>go
  wait_for 20 test -s asked
  equal 1 "$(status_of "$heaptap" doctor $target)"
  matches '^bad +not seen of it: what is allocated by the allocator inside inside \(_rjem_[a-z]+\)$' out
  "$heaptap" record -P $target -o x.pb.gz 2>err &
  front=$!
  wait_for 30 grep -q 'attached' err
  echo >&7
  wait_for 30 grep -q 'not seen: what is allocated by the allocator inside inside' err
  kill -TERM $front
  wait $front || :
  kill $target
  ! grep 'less than about' err || fail 'a bound'
  matches '^heaptap:   no allocation was sampled$' err
}

# Nothing tells that it is there.
test_an_allocator_inside_may_be_hidden() {
  allocator_inside
  strip inside
  record -o out/ ./inside 2>err
  matches '^heaptap:   not seen: [23][0-9]\.[0-9] MiB are memory in which no sampled block lies: .*an allocator inside, which may be hidden: the program is stripped; --mmap' err
  matches '^heaptap:   no allocation was sampled \(it is stripped: an allocator inside may be hidden\)$' err
  ! grep 'less than about' err || fail 'a bound'
}

# ---- a stripped program

test_a_missing_debug_file_is_named() {
  cat >gateway.c <<'C'
#include <stdlib.h>
#include <string.h>
static char *held[300];
__attribute__((noinline)) static char *resolve(int i) { char *text = strdup("a"); free(text); return malloc(65536 + i); }
__attribute__((noinline)) static void handle(void) { for (int i = 0; i < 300; i++) held[i] = resolve(i); __asm__ volatile(""); }
int main(void) { handle(); return 0; }
C
  gcc -O1 -g -w -fno-builtin -Wl,--build-id -o gateway gateway.c
  objcopy --only-keep-debug gateway kept
  objcopy --strip-all --add-gnu-debuglink=kept gateway
  mv kept gateway.debug
  objcopy --remove-section=.gnu_debuglink gateway
  objcopy --add-gnu-debuglink=gateway.debug gateway
  id=$(readelf -n gateway | awk '/Build ID/ { print $3 }')
  mv gateway.debug elsewhere
  record -q -p 16K -o x.pb.gz ./gateway
  profile_check x.pb.gz
  equal "not seen: the functions of 100 % of the bytes, in gateway, which is stripped; its debug file is not there: looked for gateway.debug, /usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" "$(comment_of x.pb.gz | grep '^not seen')"
  "$heaptap" report x.pb.gz >report
  # not _start, nor a function of the C library
  matches '100.0%.* gateway\+0x[0-9a-f]+ ' report
  mv elsewhere gateway.debug
  record -q -p 16K -o y.pb.gz ./gateway
  ! comment_of y.pb.gz | grep '^not seen' || fail 'its debug file is there'
  "$heaptap" report y.pb.gz >report
  matches '100.0%.* resolve ' report
}

# ---- interpreters

python() { python3 -c 'import os, sys; print(os.path.realpath(sys.executable))'; }

test_pythons_pool() {
  python=$(python)
  cat >pool.py <<'P'
import time
held = [{"number": i, "name": str(i)} for i in range(100000)]
time.sleep(1)
P
  record -o recorded/ "$python" pool.py 2>err
  matches "^heaptap: not seen: python's own pool; --mmap shows who makes it grow, PYTHONMALLOC=malloc is exact\$" err
  matches "^heaptap:   not seen: [0-9.]+ MiB are python's own pool or other mmap; --mmap shows who" err
  "$heaptap" report recorded/ >report
  matches "^Not seen: [0-9.]+ MiB are python's own pool or other mmap" report
  # a third of what is resident at least, at its largest: at the end it is freed already
  awk '/^heaptap:   not seen: .*pool/ { pool = $4 } /^heaptap:   resident .* MiB/ { total = $3 }
    END { exit !(pool > total / 3 && pool < total) }' err || fail 'the amounts'
  status_of "$heaptap" doctor "$python" >status
  matches '^ok .*: what it allocates by malloc is seen$' out
  matches "^note +not seen of $python: python's own pool\$" out
  # What it advises shows the pool, and is not advised again.
  record --mmap -o mmap/ "$python" pool.py 2>err
  ! grep 'pool' err || fail 'it is seen'
  PYTHONMALLOC=malloc record -o exact/ "$python" pool.py 2>err
  ! grep "python's own pool\|PYTHONMALLOC" err || fail 'there is no pool'
  for variable in IT_IS_ON=1 PYTHONMALLOC=malloc; do
    env $variable "$python" -c 'import time; print("runs", flush=True); time.sleep(600)' >runs &
    wait_for 30 grep -q runs runs
    status_of "$heaptap" doctor $! >status
    kill $!
    case $variable in
    PYTHON*) ! grep "python's own pool\|PYTHONMALLOC" out || fail 'there is no pool' ;;
    *) matches "^note +not seen of it: python's own pool\$" out ;;
    esac
    rm runs
  done
}

# A program that is not python's is not told of it.
test_other_programs_are_not_told() {
  printf '#include <stdlib.h>\nint main(void) { for (int i = 0; i < 100; i++) *(char *)malloc(1 << 20) = 1; return 0; }\n' >plain.c
  gcc -g -w -O1 -fno-builtin -o plain plain.c
  record -o recorded/ ./plain 2>err
  ! grep 'not seen' err || fail 'all is seen'
  ! comment_of "$(only recorded/*.exit.pb.gz)" | grep '^not seen' || fail 'all is seen'
}

test_names_of_pythons_functions() {
  python=$(python)
  for newer in python3.14 python3.13 python3.12; do
    ! "$newer" -c '' 2>/dev/null || python=$("$newer" -c 'import os, sys; print(os.path.realpath(sys.executable))')
  done
  printf 'held = [bytes(10000 + i) for i in range(2000)]\n' >names.py
  record -q -p 64K -o x.pb.gz "$python" names.py
  comment_of x.pb.gz | grep -qE '^not seen: the Python functions that allocated [0-9]+ % of the bytes; ' || fail 'no comment'
  "$python" -c 'import sys; sys.exit(not hasattr(sys, "activate_stack_trampoline"))' || skip "$python does not name functions"
  comment_of x.pb.gz | grep -q 'start it with PYTHONPERFSUPPORT=1' || fail 'no remedy'
  PYTHONPERFSUPPORT=1 record -q -p 64K -o y.pb.gz "$python" names.py
  ! comment_of y.pb.gz | grep 'Python functions' || fail 'they have names'
}

test_node() {
  type node >/dev/null 2>&1 || skip 'no node'
  cat >buffers.js <<'J'
const held = [], objects = [];
function keepBuffer(i) { held.push(Buffer.alloc(100000 + i, 1)); }
for (let i = 0; i < 200; i++) keepBuffer(i);
for (let i = 0; i < 1000000; i++) objects.push({ number: i, name: "n" + i });
setTimeout(() => 0, 1000);
J
  record -o recorded/ node buffers.js 2>err
  matches '^heaptap: not seen: V8.s heap \(JavaScript objects\); node --heap-prof shows' err
  matches '^heaptap:   not seen: [0-9.]+ MiB are V8.s heap \(JavaScript objects\) or other mmap; node --heap-prof' err
  flags='--perf-basic-prof-only-functions --interpreted-frames-native-stack'
  matches "^heaptap:   not seen: the JavaScript functions that allocated [0-9]+ % of the bytes; node $flags\$" err
  # What it advises names the function that ran once or a few times.
  record -p 64K -o named.pb.gz node $flags buffers.js 2>err
  ! grep 'JavaScript functions' err || fail 'they have names'
  "$readers/oracle" -reach 'keepBuffer' named.pb.gz | awk -F '\t' '$2 == "alloc_space" && $3 > 15e6 { found = 1 } END { exit !found }' ||
    fail "no keepBuffer: $("$readers/oracle" -reach 'keepBuffer' named.pb.gz)"
}

# Reserved memory that nobody touched is not in use: V8 reserves some hundred MiB.
test_nodes_reservations_are_not_in_use() {
  type node >/dev/null 2>&1 || skip 'no node'
  record --mmap -o recorded/ node -e 'setTimeout(() => 0, 1000)' 2>err
  comment_of "$(only recorded/*.exit.pb.gz)" | awk -F '[ =]' '/^rss:/ { for (i = 1; i < NF; i++) value[$i] = $(i + 1)
    if (value["mmap"] > value["anonymous"] * 3 + 33554432) { print; exit 1 } found = 1 } END { exit !found }' || fail 'what is reserved is in use'
}

# java: a JVM of version 17 or later, running; its pid.
start_java() {
  cat >Held.java <<'J'
import java.nio.ByteBuffer;
import java.util.*;
public class Held {
  static List<Object> held = new ArrayList<>();
  static void keepBuffer(int i) { held.add(ByteBuffer.allocateDirect(100000 + i)); }
  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 300; i++) keepBuffer(i);
    System.out.println("held");
    Thread.sleep(arguments.length > 0 ? 600000 : 1000);
  }
}
J
  javac Held.java
}

test_java() {
  type java javac >/dev/null 2>&1 || skip 'no java'
  start_java
  record -o recorded/ java Held 2>err
  matches '^heaptap: not seen: the JVM.s heap \(Java objects\); a heap dump shows them: jcmd PID GC.heap_dump FILE \(not where -Xrs is set\)$' err
  flags='-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit'
  matches "^heaptap:   not seen: the Java functions that allocated [0-9]+ % of the bytes; java ${flags//+/\\+}\$" err
  # The flags as they are in docs.
  grep -qF -- "$flags" "$top/docs/languages.md" || fail 'other flags in docs/languages.md'
  record -p 64K -o named.pb.gz java $flags -Xint Held 2>err || { cat err >&2; fail 'the JVM does not start with them'; }
  for options in '' -Xrs; do
    java $options Held stay >held &
    wait_for 60 grep -q held held
    status_of "$heaptap" doctor $! >status
    kill -KILL $!
    matches "^note +not seen of it: the JVM's heap \(Java objects\)\$" out
    matches '^note +not seen of it: the names of Java functions$' out
    # jcmd asks by SIGQUIT, which ends a JVM that does not catch it
    case $options in
    '') matches '^ +fix: jcmd PID Compiler.perfmap' out && matches 'GC.heap_dump FILE$' out ;;
    *) ! grep jcmd out | grep -v '(not where -Xrs is set)$' || fail 'it would end' ;;
    esac
    rm held
  done
}

# Go's heap is mapped by Go itself, in whatever way the program is linked.
test_go() {
  type go >/dev/null 2>&1 || skip 'no go'
  cat >held.go <<'G'
package main

// #include <stdlib.h>
import "C"
import (
	"bytes"
	"time"
)

var held [][]byte

func main() {
	C.free(C.malloc(100))
	for i := 0; i < 3000; i++ {
		held = append(held, bytes.Repeat([]byte{1}, 10000+i))
	}
	time.Sleep(time.Second)
}
G
  sed '/#include/d; /import "C"/d; /C\.free/d' held.go >pure.go
  HOME=$PWD CGO_ENABLED=1 nice go build -o held held.go 2>build || skip "no cgo: $(head -1 build)"
  HOME=$PWD CGO_ENABLED=0 nice go build -o pure pure.go
  strip held
  profile="Go.s own heap profile \(net/http/pprof\)"
  equal 0 "$(status_of "$heaptap" doctor ./held)"
  ! grep 'its allocations are seen' out || fail 'they are not'
  matches '^note +not seen of ./held: Go.s own heap$' out
  matches "^ +fix: --mmap shows that it grows, $profile which code\$" out
  equal 1 "$(status_of "$heaptap" doctor ./pure)"
  matches "^ +fix: $profile: if it were linked dynamically \(cgo\), Go's heap would not be seen either\$" out
  ! grep 'without -static' out || fail 'that is of no use'
  ./pure & # and of what runs
  status_of "$heaptap" doctor $! >status
  kill $!
  ! grep -e '--mmap\|link it dynamically' out || fail 'that is of no use'
  record -o recorded/ ./held 2>err
  matches "^heaptap:   not seen: [2-9][0-9]\.[0-9] MiB are Go's own heap or other mmap; --mmap shows that it grows, $profile which code\$" err
  ! grep 'less than about\|stripped' err || fail 'a bound, or a wrong guess'
  record --mmap -p 64K -o mapped/ ./held 2>err
  at_least $((16 << 20)) "$("$readers/oracle" -reach '^runtime\.|x_cgo_mmap|^held\+' "$(only mapped/*.exit.pb.gz)" | awk -F '\t' '$2 == "alloc_space" { print int($3) }')" 'mapped by Go'
}

test_phps_pool() {
  php=$(type -P php-cgi php php8.2 php8.4 | head -1)
  [ -n "$php" ] || skip 'no php'
  cat >pool.php <<'P'
<?php
function hold($i) { return str_repeat("u$i", 200); }
$held = [];
for ($i = 0; $i < 30000; $i++) $held[] = hold($i);
usleep(1000000);
P
  how="--mmap shows who makes it grow, USE_ZEND_ALLOC=0 is exact"
  record -p 64K -o recorded/ "$php" pool.php 2>err
  matches "^heaptap: not seen: PHP's own pool; $how\$" err
  matches "^heaptap:   not seen: [0-9.]+ MiB are PHP's own pool or other mmap; $how\$" err
  ! grep 'less than about' err || fail 'a bound'
  profile_check "$(only recorded/*.exit.pb.gz)"
  status_of "$heaptap" doctor "$php" >status
  matches "^note +not seen of $php: the names of PHP functions\$" out
  # What it advises is exact, and not advised again.
  USE_ZEND_ALLOC=0 record -p 64K -o exact/ "$php" pool.php 2>err
  ! grep "PHP's own pool" err || fail 'there is no pool'
  matches '^heaptap:   not seen: the PHP functions that allocated [0-9]+ % of the bytes; ' err
  "$readers/oracle" -reach execute_ex "$(only exact/*.exit.pb.gz)" | awk -F '\t' '$2 == "alloc_space" && $3 > 12e6 { found = 1 } END { exit !found }' || fail 'not exact'
}

test_php_fpm_is_known() {
  fpm=$(compgen -c php-fpm | sort | head -1)
  [ -n "$fpm" ] || skip 'no php-fpm'
  status_of "$heaptap" doctor "$(type -P "$fpm")" >status
  matches "^note +not seen of .*php-fpm[0-9.]*: PHP's own pool\$" out
}

test_erlangs_allocators() {
  type erl >/dev/null 2>&1 || skip 'no erl'
  beam=$(find /usr/lib/erlang/ -name beam.smp | head -1)
  [ -n "$beam" ] || skip 'no beam.smp'
  status_of "$heaptap" doctor "$beam" >status
  matches "^note +not seen of $beam: Erlang's own allocators\$" out
  matches '^ +fix: --mmap shows who makes it grow, erl \+Mea min is exact$' out
}

# Interpreters that use malloc: what they hold is seen, the functions of their scripts are not.
test_names_of_perls_functions() {
  type perl >/dev/null 2>&1 || skip 'no perl'
  echo 'sub hold { return "x" x (10000 + $_[0]) } my @held = map { hold($_) } 1 .. 1000;' >held.pl
  record -p 64K -o x.pb.gz perl held.pl 2>err
  matches '^heaptap:   not seen: the Perl functions that allocated [0-9]+ % of the bytes$' err
  status_of "$heaptap" doctor perl >status
  matches '^note +not seen of .*perl: the names of Perl functions$' out
}

test_names_of_other_scripts_functions() {
  for one in ruby:Ruby lua5.4:Lua tclsh:Tcl; do
    type "${one%:*}" >/dev/null 2>&1 || { echo "no ${one%:*}" >&2; continue; }
    status_of "$heaptap" doctor "${one%:*}" >status
    matches "^note +not seen of .*: the names of ${one#*:} functions\$" out
    looked=1
  done
  [ "${looked-}" ] || skip 'no ruby, lua5.4 or tclsh'
}
