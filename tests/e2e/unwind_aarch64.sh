# SPDX-License-Identifier: Apache-2.0
# The other architecture, as far as a cross compiler can tell: what runs in targets, and what knows of registers.

test_cross_compiles() {
  cc=aarch64-linux-gnu-gcc
  command -v $cc >/dev/null || skip "no $cc (package gcc-aarch64-linux-gnu)"
  flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wshadow -Wno-unused-parameter -Werror -I$top -DHEAPTAP_LIBDIR=\"\""
  for source in "$top"/sampler/unwind/unwind.c "$top"/sampler/linux/regs.c "$top"/sampler/unwind/instructions.c "$top"/sampler/perf/{record,ring}.c \
    "$top"/sampler/inject/*.c "$top"/sampler/cmd/record/session_attach.c; do
    $cc $flags -c -o object.o "$source" || fail "$source"
  done
  # The libraries of heaptap-serve have the same headers on every architecture.
  mkdir headers
  ln -s /usr/include/microhttpd.h /usr/include/seccomp.h headers/
  $cc $flags -DHEAPTAP_VERSION=\"\" -Iheaders -fsyntax-only "$top"/serve/*.c || fail 'serve'
  for source in "$top"/preload/*.c; do
    case $(basename "$source" .c) in # what only libheaptap-attach.so has, on x86-64
    running | import) continue ;;
    esac
    $cc $flags -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin -c -o "$(basename "$source" .c).preload.o" \
      "$source" || fail "$source"
  done
  $cc -shared -Wl,--version-script="$top/preload/preload.map" -Wl,-z,defs -o libheaptap.so ./*.preload.o
  # Two instructions: the note's, for a uprobe, and the next, for a breakpoint. On one the program would die.
  probed=$(readelf -n libheaptap.so | sed -n 's/^ *Location: 0x0*\([0-9a-f]*\),.*/\1/p')
  equal "$probed $(printf %x $((0x$probed + 4)))" \
    "$(aarch64-linux-gnu-objdump -d --disassemble=capture_trigger libheaptap.so | sed -n 's/^ *\([0-9a-f]*\):\t.*\tnop$/\1/p' |
      tr '\n' ' ' | sed 's/ $//')" 'the two instructions of the trigger'
  # A program of that architecture runs with it as with none, if there is an emulator (nobody listens there).
  command -v qemu-aarch64 >/dev/null || return 0
  printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' \
    'int main(void) { for (int i = 0; i < 1000; i++) free(malloc(i)); return puts("done") < 0; }' >program.c
  $cc -O1 -fno-builtin -o program program.c
  equal done "$(qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_PRELOAD="$PWD/libheaptap.so" ./program)"
}

# The programs under test, too: none calls what only x86-64 has.
test_targets_compile() {
  cc=aarch64-linux-gnu-gcc
  command -v $cc >/dev/null || skip "no $cc (package gcc-aarch64-linux-gnu)"
  for source in "$top"/tests/targets/*.c; do
    # shellcheck disable=SC2046 # options
    $cc -std=gnu11 -O2 -w -Werror=implicit-function-declaration -pthread -I"$top" -fsyntax-only \
      $(sed -n 's,^/\* build: \(.*\) \*/$,\1,p' "$source" | tr ' ' '\n' | grep -v '^-[lW]') "$source" || fail "$source"
  done
}
