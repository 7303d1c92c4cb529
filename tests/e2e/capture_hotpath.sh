# SPDX-License-Identifier: Apache-2.0
# What an allocation that is not sampled costs, as far as it can be said without a clock: instructions.

library=$HEAPTAP_PROGRAMS/libheaptap.so

test_exported_names() {
  nm -D --defined-only "$library" | awk '{ print $NF }' | sort >exported
  sed -n 's/;/ /g; s/^\t\t\([a-z_].*\)/\1/p' "$top/preload/preload.map" | tr -s ' ' '\n' | grep . | sort >listed
  cmp listed exported || { diff listed exported >&2 || :; fail 'the list and the library differ'; }
  equal 20 "$(grep -cE '^_Z[nd]' exported)" 'forms of operator new and delete'
}

# Old enough for every glibc since 2.17, and no library but libc: one file for all, musl's loader too.
test_needs_no_new_libc() {
  readelf -dW "$library" | awk '/NEEDED/ { print $NF }' >needed
  equal '[libc.so.6]' "$(cat needed)"
  objdump -T "$library" | grep -o 'GLIBC_2\.[0-9.]*' | sort -Vu | tail -n 1 >newest
  case $(uname -m) in
    x86_64) equal GLIBC_2.17 "$( (cat newest; echo GLIBC_2.17) | sort -V | tail -n 1)" ;;
  esac
}

test_thread_storage() {
  bytes=$(readelf -lW "$library" | awk '$1 == "TLS" { print strtonum($6) }' 2>/dev/null ||
    readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
  at_least "$((bytes))" 64 'bytes of static TLS, at most'
  ! objdump -dr "$library" | grep -q __tls_get_addr || fail '__tls_get_addr is called'
  readelf -dW "$library" | grep -q STATIC_TLS || fail 'TLS is not initial-exec'
  ! readelf -rW "$library" | grep -qE 'DTPMOD|TLSDESC' || fail 'dynamic TLS relocations'
}

# straight FUNCTION: its instructions from the entry to the first unconditional jump, branches not taken
straight() {
  objdump -d --no-show-raw-insn "$library" |
    awk -v name="<$1>:" '$2 == name { on = 1; next } on && NF == 0 { exit } on { print; if ($2 ~ /^jmp/) exit }'
}

test_unsampled_path_is_straight() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  for function in malloc free; do
    straight $function >path
    tail -n 1 path | grep -qE 'jmp +\*' || { cat path >&2; fail "$function does not end in a forwarding jump"; }
    ! grep -qE 'call|lock|syscall|xchg|mfence|cpuid|rdtsc|push|pop' path || { cat path >&2; fail "$function does more"; }
    at_least "$(wc -l <path)" 14 "instructions of $function, at most"
  done
}

# Where the operators are libstdc++'s: two instructions, no frame. Without --mmap: a test more, of mmap with its address.
test_forwarded_functions_are_straight() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  for function in _Znwm _ZnamSt11align_val_t _ZdlPv _ZdlPvm mmap mmap64 munmap mprotect; do
    straight $function >path
    tail -n 1 path | grep -qE 'jmp +\*' || { cat path >&2; fail "$function does not end in a forwarding jump"; }
    ! grep -qE 'call|lock|push|pop' path || { cat path >&2; fail "$function does more"; }
    most=2
    case $function in
      mmap*) most=7 ;; # and whether the program says where, and a forked child has no place yet
      munmap) most=5 ;;
      mprotect) most=5 ;; # and whether it may still be read, and whether mappings are recorded
    esac
    at_least "$(wc -l <path)" $most "instructions of $function, at most"
  done
}

# A uprobe on a five-byte nop becomes, from Linux 6.18 on, a call to a page that a forked child lacks, and a system call
# that a sandbox may punish. processes.sh has the children; here is the instruction.
test_trigger_begins_with_a_one_byte_nop() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  address=$(readelf -n "$library" | sed -n 's/.*Location: 0x0*\([0-9a-f]*\),.*/\1/p')
  equal 90 "$(objdump -d "$library" | awk -v at="$address:" '$1 == at { print $2; exit }')" 'first byte of the trigger'
}

# counted PRELOAD COMMAND-PREFIX...: instructions of 80,000 pairs
counted() {
  local preload=$1 few many
  shift
  few=$(LD_PRELOAD=$preload "$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$targets/capture_cost" count 8000 2>&1 |
    sed -n 's/^==[0-9]*== Collected : //p')
  many=$(LD_PRELOAD=$preload "$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$targets/capture_cost" count 88000 2>&1 |
    sed -n 's/^==[0-9]*== Collected : //p')
  awk -v few="$few" -v many="$many" 'BEGIN { printf "%.1f\n", (many - few) / 80000 }'
}

test_instructions_of_a_pair() {
  command -v valgrind >/dev/null || skip 'valgrind is not installed'
  gcc -O2 -shared -fPIC -w -D_GNU_SOURCE -o forward.so "$top/bench/capture_forward.c"
  native=$(counted '' env)
  forwarding=$(counted "$PWD/forward.so" env)
  idle=$(counted "$library" env)
  # Attached, the sampled pairs are in it too: 80,000 small pairs are 8 MB, 16 samples.
  attached=$(counted '' "$heaptap" record -q -b copy -o attached/)
  echo "per pair: native $native, forwarding $forwarding, heaptap idle $idle, attached $attached"
  at_least 10 "$native" 'native' # else valgrind did not count
  at_least "$native" "$idle" 'idle, and not less than natively'
  at_least "$native" "$attached" 'attached, and not less than natively'
  at_least "$idle" "$(awk -v f="$forwarding" 'BEGIN { print f + 17 }')" 'forwarding + 17 instructions, idle'
  at_least "$attached" "$(awk -v f="$forwarding" 'BEGIN { print f + 19 }')" 'forwarding + 19 instructions, attached'
}
