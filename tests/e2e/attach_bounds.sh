# SPDX-License-Identifier: Apache-2.0
# What a hostile process makes heaptap read before it attaches is bounded. (The processor time: unit/attacher.)

. "$HEAPTAP_TOP/tests/attach.sh"

# A process may have 65,530 mappings, each with a path of 4 KiB: as many bytes are not kept for it.
test_too_many_long_paths() {
  need_root
  running /usr/bin/python3 -c 'import mmap, os, sys
for _ in range(15):
    os.mkdir("a" * 250)
    os.chdir("a" * 250)
files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in "ab"]
for file in files: os.ftruncate(file, 4096)
kept = [mmap.mmap(files[i % 2], 4096, prot=mmap.PROT_READ) for i in range(6000)]
print("ready", flush=True)
sys.stdin.read()'
  equal 1 "$(status_of "$heaptap" record -P "$target" 7>&-)"
  matches "^heaptap: pid $target has more mappings with long paths than heaptap reads\$" err
  finish
}
