# SPDX-License-Identifier: Apache-2.0
# `heaptap enable --machine-wide`: in trees, and for real in a mount namespace that has an /etc of its own.
# timeout: 60

test_the_file() {
  library=$HEAPTAP_PROGRAMS/libheaptap.so
  mkdir -p root/etc "root${library%/*}"
  cp "$library" "root${library%/*}"
  file=root/etc/ld.so.preload
  equal 0 "$(status_of "$heaptap" enable --root root --machine-wide)"
  equal "$library" "$(cat $file)"
  equal 644 "$(stat -c %a $file)"
  equal 0 "$(status_of "$heaptap" enable --root root --machine-wide)"
  matches 'is enabled already$' out
  equal 0 "$(status_of "$heaptap" disable --root root --machine-wide)"
  [ ! -e $file ] || fail 'the file is still there'
  equal 0 "$(status_of "$heaptap" disable --root root --machine-wide)"
  # What others have in it stays as it is, byte for byte.
  printf '# of the operators: do not touch\n/usr/lib/a.so  /usr/lib/b.so:/c.so # both\n\n/d.so' >$file
  chmod 600 $file
  cp $file before
  "$heaptap" enable --root root --machine-wide >/dev/null
  equal "$library" "$(head -1 $file)"
  tail -n +2 $file | cmp - before
  equal 600 "$(stat -c %a $file)"
  "$heaptap" disable --root root >/dev/null
  cmp $file before
  # Ours behind another one: it becomes the first, and is there once.
  printf '/a.so %s /b.so # x\n%s\n%s.old\n' "$library" "$library" "$library" >$file
  "$heaptap" enable --root root --machine-wide >/dev/null
  equal "$library
/a.so /b.so # x
$library.old" "$(cat $file)"
  # A comment is no entry.
  printf '# %s\n' "$library" >$file
  "$heaptap" enable --root root --machine-wide >/dev/null
  equal "$library" "$(head -1 $file)"
}

# own_etc SCRIPT: runs it where /etc is a copy, and heaptap is ./bin/heaptap of root, with library ./bin/libheaptap.so
own_etc() {
  need_root
  unshare -m true 2>/dev/null || skip 'no mount namespace can be made'
  mkdir -p etc
  cat >inside.sh <<EOF
set -eu
mount --make-rprivate /
mount -t tmpfs none etc
cp -a /etc/. etc
rm -f etc/ld.so.preload
mount --bind etc /etc
$1
EOF
  unshare -m sh inside.sh
}

test_for_real() {
  stage leaky
  own_etc "
    mount -t tmpfs none /run
    $heaptap enable --machine-wide
    ls -A /run >trial
    cp /etc/ld.so.preload enabled
    cat /proc/self/maps >maps
    $heaptap enable --machine-wide >again
    $heaptap doctor >doctor || :
    $heaptap disable --machine-wide
    ls /etc/ld.so.preload 2>left || :" >log
  equal "$PWD/bin/libheaptap.so" "$(cat enabled)"
  matches "$PWD/bin/libheaptap.so" maps
  matches 'is enabled already$' again
  matches 'every program loads the library when it starts' doctor
  matches 'No such file' left
  [ ! -s trial ] || fail 'the trial has left its folder'
}

# What programs of root find in /etc while it is tried is in no folder of another user.
test_the_trial_is_in_no_strangers_folder() {
  stage leaky
  mkdir theirs
  chown 4243 theirs
  before=$(stat -c %y theirs)
  TMPDIR=$PWD/theirs own_etc "$heaptap enable --machine-wide" >log
  equal "$before" "$(stat -c %y theirs)" 'when something was last made in it'
}

# refused CODE REGEX: with such a constructor in the library the trial fails, and the file is not there
refused() {
  printf '#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/auxv.h>\n#include <unistd.h>\n%s\n' \
    "$1" >bad.c
  gcc -shared -fPIC -o bin/libheaptap.so bad.c
  own_etc "
    $heaptap enable --machine-wide 2>err && exit 9
    ls /etc/ld.so.preload 2>/dev/null && exit 8
    printf '/other.so\n' >/etc/ld.so.preload
    $heaptap enable --machine-wide 2>err2 && exit 7
    printf '/other.so\n' | cmp - /etc/ld.so.preload"
  matches "^heaptap: /etc/ld.so.preload is left as it is: $2" err
}

test_a_library_that_does_harm() {
  stage leaky
  refused '__attribute__((constructor)) static void x(void) { abort(); }' 'true dies of Aborted under it'
  refused '__attribute__((constructor)) static void x(void) { (void)!write(2, "hello\n", 6); }' \
    "true ends with status 0 and says 'hello' under it"
  refused '__attribute__((constructor)) static void x(void) { if (getauxval(AT_SECURE)) abort(); }' \
    '(su|mount|passwd) dies of Aborted under it'
  # Only with threads, one of which python3 may have, too.
  refused 'static __thread int n; void *calloc(size_t a, size_t b) { void *p = malloc(a * b);
    if (gettid() != getpid() && a == 1 && b > 2000) abort(); if (p) memset(p, 0, a * b); return p; }' \
    '(python3|threads) dies of Aborted under it'
}

# Who may replace the library may run code as root.
test_a_library_of_others() {
  stage leaky
  chmod 666 bin/libheaptap.so
  own_etc "$heaptap enable --machine-wide 2>err && exit 9; ls /etc/ld.so.preload 2>/dev/null && exit 8; :"
  matches 'libheaptap.so belongs to another user than root, or others may write there' err
}
