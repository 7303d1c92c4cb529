# SPDX-License-Identifier: Apache-2.0
# The hook's index and books under ThreadSanitizer: the unit tests that run threads against each other, built anew.
# timeout: 300

test_no_races() {
  local module
  echo 'int main(void) { return 0; }' >empty.c
  gcc -fsanitize=thread -o empty empty.c 2>/dev/null && ./empty || skip 'no ThreadSanitizer here'
  # As an archive, as in tests/tests.mk: a test may bring a source of the hook's itself. What it exports is left out.
  hook=$(cd "$top" && find preload -name '*.c' | grep -vE '/(api|attach|constructor|hooks|mmap|next_symbol.*|signal)\.c')
  region=$(cd "$top" && echo sampler/intake/{live_scan,loader_log,region,region_*,walk_table}.c \
    sampler/linux/{memory_file,proc}.c pprof/t*/*.c)
  for source in $hook $region tests/unit/live.c tests/unit/place.c tests/unit/slot.c tests/unit/mapping.c; do
    (cd "$top" && gcc -std=c11 -D_GNU_SOURCE -O1 -g -w -fsanitize=thread -I. -c -o "$OLDPWD/$(echo "$source" | tr / -).o" "$source")
  done
  ar rcs hook.a preload-*.o sampler-*.o pprof-*.o
  for module in live place slot mapping; do
    gcc -fsanitize=thread -o $module tests-unit-$module.c.o hook.a -lcmocka -lm -lpcre2-8 -linih
    TSAN_OPTIONS=halt_on_error=1 ./$module >log 2>&1 || { tail -n 60 log >&2; fail "$module under ThreadSanitizer"; }
  done
}
