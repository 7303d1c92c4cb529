# SPDX-License-Identifier: Apache-2.0
# Programs whose stacks are deeper than what the kernel dumps: all of each stack all the same, and what is cut is said.
# timeout: 300

# complete PROFILE: every stack that is there reaches the program's start, or the loader's, which runs the constructors of
# libraries. (On a machine as busy as this one may be now, some are lost for want of room; that is another matter.)
complete() {
  profile_check "$1"
  comment_of "$1" >comments
  grep -E '^samples: .*(truncated|bad read|no map|loop|switched|rows|module)' comments && fail "$backend: not complete"
  equal 100 "$(share_of '^(_start|_dl_start_user|ld-linux[^ ]*|\[lost stack\])$' "$1")" "$backend: share of bytes that reach a start"
  at_least 1 "$(share_of '^_start$' "$1")" "$backend: share of bytes that are not lost"
}

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

make_source() {
  cat >big.cc <<'CC'
#include <algorithm>
#include <map>
#include <string>
#include <vector>
template <int n> struct nest : nest<n - 1> { std::map<std::string, std::vector<nest<n - 1>>> all; };
template <> struct nest<0> {};
int f(const std::string &s) { nest<9> n; std::sort(n.all[s].begin(), n.all[s].end(), [](auto &a, auto &b) { return &a < &b; }); return (int)n.all.size(); }
CC
}

test_clang() {
  clang=$(readlink -f "$(command -v clang++ || echo /nonexistent)")
  [ -x "$clang" ] || skip 'no clang++'
  make_source
  for backend in $(backends); do
    rm -f ./*.pb.gz
    record -q -b "$backend" -p 64K -o %n.pb.gz "$clang" -cc1 -x c++ -std=c++17 -O2 -fcxx-exceptions -fexceptions \
      -internal-isystem "$(clang++ -print-resource-dir)/include" $(c++_folders) -S -o big.s big.cc
    complete exit.pb.gz
    # Not by luck: most of its stacks do not fit into the default dump.
    [ "$backend" = copy ] || comment_of exit.pb.gz | grep -qE 'copied by the hook [0-9]' || fail 'nothing was too deep'
  done
}

# The folders of the system's C++ headers, as options of clang's inner compiler.
c++_folders() {
  g++ -E -x c++ -v /dev/null 2>&1 | sed -n '/^#include </,/^End/s,^ \(/.*\),-internal-isystem \1,p' | grep -v /lib/gcc/
}

test_gcc() {
  cc1plus=$(g++ -print-prog-name=cc1plus 2>/dev/null)
  [ -x "$cc1plus" ] || skip 'no cc1plus'
  make_source
  for backend in $(backends); do
    rm -f ./*.pb.gz
    record -q -b "$backend" -p 32K -o %n.pb.gz "$cc1plus" -quiet -imultiarch x86_64-linux-gnu -D_GNU_SOURCE -O2 -o big.s big.cc
    complete exit.pb.gz
  done
}

# A parser that calls itself for each parenthesis: cc1's stack, far deeper than 64 KiB.
test_gcc_on_nested_expressions() {
  cc1=$(gcc -print-prog-name=cc1 2>/dev/null)
  [ -x "$cc1" ] || skip 'no cc1'
  python3 -c 'print("int f(int x) { return " + "(x + " * 150 + "1" + ")" * 150 + "; }")' >deep.c
  for backend in $(backends); do
    rm -f ./*.pb.gz
    record -q -b "$backend" -p 4K -o %n.pb.gz "$cc1" -quiet -O2 -o deep.s deep.c
    complete exit.pb.gz
  done
}
