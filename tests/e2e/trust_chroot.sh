# SPDX-License-Identifier: Apache-2.0
# A root of its own, with a library of its own.
# timeout: 60

# make_root [PROGRAM]
make_root() {
  local program=$targets/${1:-outlive}
  for file in "$program" "$targets/libheaptap.so" $(ldd "$program" | grep -o '/[^ ]*'); do
    mkdir -p "root${file%/*}"
    cp -L "$file" "root$file"
  done
}

test_a_copy_of_the_library_in_a_chroot() {
  need_root
  stage outlive
  mkdir -p root/proc
  make_root
  unshare -m mount --bind /proc root/proc 2>/dev/null || skip 'no mounts here'
  unshare -m sh -c 'mount --bind /proc root/proc && exec "$@"' sh \
    "$heaptap" record -v -p 64K -i 0 -o "$PWD/prof/" chroot root "$targets/outlive" 2>err &
  front=$!
  wait_for 20 test -e root/ready
  wait_for 20 grep -q 'has a copy of the library: no uprobe for it' err
  touch root/go
  wait $front || [ $? = 7 ] || fail "status $?: $(cat err)"
  profile=$(only prof/heaptap.outlive.*.exit.pb.gz)
  profile_check "$profile"
  # 300 blocks of 50000 bytes, each sampled with a probability of 0.53
  "$readers/oracle" -func "$profile" | awk -F '\t' '$2 == "alloc_space" && $5 == "after" { print $4 }' >after
  at_least 10000000 "$(cat after)" 'bytes known to be of after()'
}

# The program knows by the library's file that no uprobe will fire: its first stacks are not lost.
test_the_first_stacks_in_a_chroot() {
  need_root
  stage truth
  mkdir -p root/proc
  make_root truth
  unshare -m mount --bind /proc root/proc 2>/dev/null || skip 'no mounts here'
  unshare -m sh -c 'mount --bind /proc root/proc && exec "$@"' sh \
    "$heaptap" record -v -p 64K -i 0 -o "$PWD/prof/" chroot root "$targets/truth" /truth 10 0 2>err || fail "status $?: $(cat err)"
  comment_of "$(only prof/heaptap.truth.*.exit.pb.gz)" >comment
  matches '^samples: [1-9][0-9]+ taken, 0 lost stacks' comment
}

# The library finds its session by /proc. Where there is none, the sampler knows by the kernel's word alone.
test_no_proc_in_a_chroot() {
  need_root
  stage outlive
  mkdir -p root
  make_root
  "$heaptap" record -b uprobe -p 64K -i 0 -o "$PWD/prof/" chroot root "$targets/outlive" 2>err &
  front=$!
  wait_for 20 test -e root/ready
  touch root/go
  wait $front || [ $? = 7 ] || fail "status $?: $(cat err)"
  ! grep -q 'backend uprobe is not available' err || skip 'no uprobes here'
  matches 'not profiled: 1 process after an exec; the last executed .*outlive, which is not profiled: .*no /proc' err
}

a_root_without_the_library() {
  need_root
  stage outlive
  mkdir -p root/proc
  make_root
  rm "root$targets/libheaptap.so"
  unshare -m mount --bind /proc root/proc 2>/dev/null || skip 'no mounts here'
}

# FOLDER...: of the library or /proc, as the manual advises.
in_a_chroot_with() {
  # shellcheck disable=SC2016
  HEAPTAP=$heaptap unshare -m sh -c 'for folder; do mount --bind "$folder" "root$folder" || exit; done
    exec "$HEAPTAP" record -p 64K -i 0 -o prof/ chroot root "${HEAPTAP%/*}/outlive"' sh "$@" 2>err &
  front=$!
  wait_for 20 test -e root/ready
}

test_no_library_in_a_chroot() {
  a_root_without_the_library
  in_a_chroot_with /proc
  touch root/go
  wait $front || [ $? = 7 ] || fail "status $?: $(cat err)"
  matches 'ERROR: ld.so: .*libheaptap.so.* cannot be preloaded' err
  matches 'not profiled: 1 process after an exec; .*outlive, which is not profiled: libheaptap.so is not at its path in the root' err
}

test_the_librarys_folder_in_a_chroot() {
  a_root_without_the_library
  in_a_chroot_with /proc "$targets"
  touch root/go
  wait $front || [ $? = 7 ] || fail "status $?: $(cat err)"
  ! grep 'cannot be preloaded' err || fail 'not preloaded'
  profile_check "$(only prof/heaptap.outlive.*.exit.pb.gz)"
}
