# SPDX-License-Identifier: Apache-2.0
# heaptap for aarch64, by qemu's user mode: what needs no kernel of that architecture. It has no perf events, and what it
# executes is of this machine.

[ -n "${HEAPTAP_ARM64:-}" ] || skip "not built for aarch64: Debian's packages for arm64 cannot be had here, or a pattern left it out"
command -v qemu-aarch64 >/dev/null || skip 'no qemu-aarch64 (package qemu-user)'

arm64() {
  qemu-aarch64 -cpu max,pauth-impdef=on -L "$HEAPTAP_ARM64" "$HEAPTAP_BUILD-arm64/heaptap" "$@"
}

# What is for x86-64 only is refused by its name, and nothing else chooses it.
test_what_is_refused() {
  sleep 1000 &
  target=$!
  equal 1 "$(status_of arm64 record -P $target -o x.pb.gz)"
  matches "^heaptap: the heap of a process that runs already cannot be recorded here: attaching works only on x86-64, .*; start it with 'heaptap record COMMAND'\$" err
  status_of arm64 doctor $target >status
  matches 'cannot be attached to: attaching works only on x86-64' out
  matches '^ok +kernel [0-9.]+.* on aarch64$' out
  kill $target
}

# Files are read alike.
test_a_profile_of_another_machine() {
  record -q -p 1 -o x.pb.gz "$targets/leaky" 300 64
  for command in 'report --tree' 'report' 'check'; do
    "$heaptap" $command x.pb.gz >here
    arm64 $command x.pb.gz >there
    cmp here there || { diff here there >&2; fail "$command"; }
  done
}

# heaptap-serve answers, and what its web process asks of the kernel then is in the filter as it is compiled for aarch64.
# qemu's user mode installs no filters: the library that would is replaced by one that writes it down. Without that it
# refuses to run, and so answers nobody.
serve() {
  rm -f serve.err
  qemu-aarch64 -cpu max,pauth-impdef=on -L "$HEAPTAP_ARM64" "$@" "$HEAPTAP_BUILD-arm64/heaptap-serve" --listen 127.0.0.1:0 \
    profiles 2>serve.err &
  serve_pid=$!
}

test_serve() {
  command -v curl >/dev/null || skip 'no curl'
  record -q -p 1 -o profiles/ "$targets/leaky" 300 64
  serve
  ! wait $serve_pid || fail 'it runs without its filter'
  matches '^heaptap: the web process cannot start: ' serve.err
  cat >load.c <<'C'
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <unistd.h>
int seccomp_attr_set(scmp_filter_ctx filter, enum scmp_filter_attr attr, uint32_t value) { return 0; }
int seccomp_load(scmp_filter_ctx filter)
{
	int fd = open("filter", O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0 || seccomp_arch_native() != SCMP_ARCH_AARCH64 || seccomp_export_pfc(filter, fd) != 0)
		return -1;
	dprintf(open("web", O_WRONLY | O_CREAT, 0666), "%d\n", (int)getpid());
	return open("installed", O_WRONLY | O_CREAT, 0666) < 0 ? -1 : 0;
}
C
  aarch64-linux-gnu-gcc --sysroot="$HEAPTAP_ARM64" -shared -fPIC -o load.so load.c
  chmod 777 . # it writes as the user that it becomes
  serve -E LD_PRELOAD="$PWD/load.so" -strace
  trap 'kill $serve_pid' EXIT
  wait_for 20 grep -q 'heaptap: serving on http' serve.err
  url=$(sed -n 's,^.*heaptap: serving on \(http://[^/]*\)/.*,\1,p' serve.err | head -1)
  wait_for 20 curl -sf -o page "$url/"
  matches '<html' page
  curl -sf -o x.pb.gz "$url/debug/pprof/heap" || curl -s "$url/debug/pprof/heap" >&2
  profile_check x.pb.gz
  curl -sf "$url/metrics" | matches '^heaptap_' /dev/stdin
  curl -sf "$url/api/v1/openapi.json" | python3 -m json.tool >/dev/null
  sed -n 's/^ *# filter for syscall "\([a-z0-9_]*\)" .*/\1/p' filter | sort -u >allowed
  ! grep -xE 'open|openat|openat2|connect|socket|execve|clone|clone3|kill|ptrace|prctl' allowed || fail 'the filter allows these'
  # Lines of both processes run into each other now and then, also the one with the mark.
  awk -v web="$(cat web)" '/"installed"/ { after = 1; next } after && $1 == web' serve.err |
    sed -n 's/^[0-9]* \([a-z0-9_]*\)(.*/\1/p' | sort -u >asked
  at_least 10 "$(wc -l <asked)" 'system calls that were seen'
  printf '%s\n' rseq set_robust_list >>asked # those with which a thread begins, which may be before the filter or after
  sort -u -o asked asked
  comm -23 asked allowed >refused
  [ ! -s refused ] || fail "the filter refuses $(tr '\n' ' ' <refused)"
}
