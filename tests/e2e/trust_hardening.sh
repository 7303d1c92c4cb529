# SPDX-License-Identifier: Apache-2.0
# What the compiler and the linker can do for a program that reads hostile input.

has_linker_hardening() {
  readelf -lW "$1" >segments
  readelf -dW "$1" >dynamic
  matches '^ *GNU_RELRO' segments
  matches '^ *GNU_STACK .* RW +0x' segments # and not RWE
  ! grep -E '^ *LOAD .* (RWE|WE)' segments || fail "$1 has memory that is writable and executable"
  matches '\((FLAGS_1|BIND_NOW|FLAGS)\).*(NOW|BIND_NOW)|\(BIND_NOW\)' dynamic
  ! grep -E 'TEXTREL|RPATH|RUNPATH' dynamic || fail "$1 has text relocations, or a path for libraries"
}

test_the_sampler() {
  has_linker_hardening "$heaptap"
  matches 'FLAGS_1.*PIE' dynamic
  readelf --dyn-syms -W "$heaptap" >symbols
  matches ' __stack_chk_fail' symbols
  case $HEAPTAP_BUILD in
    *address* | *thread* | *undefined*) skip 'a sanitizer has checks of its own' ;;
  esac
  matches ' __(snprintf|vsnprintf|read|memcpy|sprintf|strcpy)_chk' symbols
}

# They read what servers and browsers send.
test_the_pusher_and_the_server() {
  for program in "$HEAPTAP_PROGRAMS/heaptap-push" "$HEAPTAP_PROGRAMS/heaptap-serve"; do
    has_linker_hardening "$program"
    matches 'FLAGS_1.*PIE' dynamic
    readelf --dyn-syms -W "$program" >symbols
    matches ' __stack_chk_fail' symbols
    case $HEAPTAP_BUILD in
      *address* | *thread* | *undefined*) continue ;; # a sanitizer has checks of its own
    esac
    matches ' __(snprintf|vsnprintf|read|memcpy|sprintf|strcpy)_chk' symbols
  done
  # No other process speaks HTTP.
  ! readelf -dW "$heaptap" | grep -i curl || fail 'heaptap itself loads libcurl'
}

# They live in other people's processes, where a canary would be one more thing that can go wrong: linker hardening only.
test_the_libraries() {
  has_linker_hardening "$HEAPTAP_PROGRAMS/libheaptap.so"
  has_linker_hardening "$HEAPTAP_PROGRAMS/libheaptap-attach.so"
}
