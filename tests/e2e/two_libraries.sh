# SPDX-License-Identifier: Apache-2.0
# Two copies of the library in one process: of `heaptap record` and of /etc/ld.so.preload, of two builds. The process is
# recorded by one of them, and each block is counted once.
# timeout: 60

# other_copy: a copy is another file, so the loader takes both
other_copy() {
  stage truth attach_truth attach_module
  mkdir -p other
  cp bin/libheaptap.so other/
  chmod -R a+rX .
  other=$PWD/other/libheaptap.so
}

# agrees PROFILE TABLE: of truth.c
agrees() {
  local name objects bytes inuse inuse_bytes
  profile_check "$1"
  while IFS=$'\t' read -r name objects bytes inuse inuse_bytes _; do
    reached_exactly "$1" "$name" "alloc_objects $objects" "alloc_space $bytes" "inuse_objects $inuse" "inuse_space $inuse_bytes"
  done <"$2"
  ! comment_of "$1" | grep 'malloc of its own' || fail 'it says that the program has a malloc of its own'
}

# recorded COMMAND...: that starts truth with the table `table`: one profile of one process, and right
recorded() {
  rm -rf out table
  "$@" 2>err || fail "status $?: $(cat err)"
  ls out >files
  equal 1 "$(grep -c 'heaptap\.truth\..*\.exit.*\.pb\.gz' files)" "profiles in: $(tr '\n' ' ' <files)"
  ! grep -q 'executed another program' err || fail "$(cat err)"
  agrees "$(only out/heaptap.truth.*.exit.pb.gz)" table
}

test_both_are_preloaded() {
  other_copy
  # Ours comes first; and a child may turn them round, or have the other one twice.
  LD_PRELOAD=$other recorded "$heaptap" record -b copy -p 1 -o out/ "$targets/truth" table 2 1000
  recorded "$heaptap" record -b copy -p 1 -o out/ env LD_PRELOAD="$other:$PWD/bin/libheaptap.so" "$targets/truth" table 2 1000
  mkdir third
  cp "$other" third/
  recorded "$heaptap" record -b copy -p 1 -o out/ \
    env LD_PRELOAD="$other $PWD/third/libheaptap.so $PWD/bin/libheaptap.so" "$targets/truth" table 2 1000
}

test_one_is_for_the_whole_machine() {
  need_root
  unshare -m true 2>/dev/null || skip 'no mount namespace can be made'
  other_copy
  mkdir etc
  cat >inside.sh <<'EOS'
set -eu
mount --make-rprivate /
mount -t tmpfs none etc
cp -a /etc/. etc
echo "$1" >etc/ld.so.preload
mount --bind etc /etc
shift
exec "$@"
EOS
  recorded unshare -m sh inside.sh "$other" "$heaptap" record -b copy -p 1 -o out/ "$targets/truth" table 2 1000
  # in a child of a shell, which has both too
  recorded unshare -m sh inside.sh "$other" "$heaptap" record -b copy -p 1 -o out/ sh -c "$targets/truth table 2 1000; :"
}

# A forked child is known by the first one, too.
test_a_forked_child() {
  other_copy
  cat >child.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile blocks[300];
__attribute__((noinline)) static void in_parent(void) { for (int i = 0; i < 100; i++) blocks[i] = malloc(1000); }
__attribute__((noinline)) static void in_child(void) { for (int i = 100; i < 300; i++) blocks[i] = malloc(500); }
int main(void)
{
	int status;
	in_parent();
	pid_t child = fork();
	if (child == 0) {
		in_child();
		for (int i = 0; i < 50; i++)
			free(blocks[i]);
		_exit(0);
	}
	waitpid(child, &status, 0);
	char text[16];
	return status != 0 || write(1, text, snprintf(text, sizeof(text), "%d\n", child)) < 0;
}
C
  gcc -O1 -g -fno-builtin -o child child.c
  LD_PRELOAD=$other "$heaptap" record -q -b copy -p 1 -o out/ ./child >pid
  equal 2 "$(ls out/*.exit*.pb.gz | wc -l)" "profiles in: $(ls out)"
  profile=$(only out/heaptap.child."$(cat pid)".exit.pb.gz)
  profile_check out/*.pb.gz
  reached_exactly "$profile" in_child 'alloc_objects 200' 'inuse_space 100000'
  reached_exactly "$profile" in_parent 'alloc_objects 0' 'inuse_objects 50' 'inuse_space 50000'
  rm "$profile"
  reached_exactly "$(only out/heaptap.child.*.exit.pb.gz)" in_parent 'alloc_objects 100' 'inuse_space 100000'
}

# They have one offer: whoever takes it has all of the process. And it is attached to as any other.
test_they_offer_one_region() {
  need_root
  . "$HEAPTAP_TOP/tests/attach.sh"
  other_copy
  running env -u HEAPTAP LD_PRELOAD="$PWD/bin/libheaptap.so:$other" "$targets/attach_truth" 2 "$targets/attach_module"
  equal 1 "$(grep -c ' 00000000 .*/memfd:heaptap (deleted)' "/proc/$target/maps")" 'regions that it offers'
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  detach
  profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
  reached_exactly "$profile" thread_work 'alloc_objects 1000' 'alloc_space 300000' 'inuse_objects 500'
  reached_exactly "$profile" module_alloc 'alloc_objects 200' 'alloc_space 200000'
  finish
}
