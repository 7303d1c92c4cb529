# SPDX-License-Identifier: Apache-2.0
# The guests of the lab, and where their parts are; sourced by the scripts beside this file.

# name, architecture, kernel, suite that has it, first process, qemu's model of a processor
#  - 6.12: with a cmpxchg16b, QEMU 7.2 lets it panic in its allocator after two seconds
#  - arm64: pointer authentication by a cipher that emulates quickly; no systemd, since its packages are not configured (build)
guests='
amd64-5.10          amd64  5.10  bullseye  job      max
amd64-6.1           amd64  6.1   bookworm  job      max
amd64-6.1-systemd   amd64  6.1   bookworm  systemd  max
amd64-6.12          amd64  6.12  trixie    job      max,-cx16
arm64-6.1           arm64  6.1   bookworm  job      max,pauth-impdef=on
'

# Outside of the tree, so that every checkout has them.
lab=${XDG_CACHE_HOME:-${HOME:?}/.cache}/heaptap/lab

# guest_names [PATTERN]: an extended regular expression that means the whole name
guest_names() {
  awk 'NF { print $1 }' <<<"$guests" | grep -E -x -- "${1:-.*}"
}

# guest_of NAME: sets architecture, series, suite, first, processor
guest_of() {
  # shellcheck disable=SC2034 # for who calls
  read -r _ architecture series suite first processor < <(awk -v name="$1" '$1 == name' <<<"$guests") ||
    { echo "lab: no guest is called '$1'; there are: $(guest_names | tr '\n' ' ')" >&2; return 1; }
  kernel=$lab/kernel-$architecture-$series
  userland=$lab/userland-$architecture
}
