# SPDX-License-Identifier: Apache-2.0
# What a sampler keeps of a thousand programs that have come and gone.
# timeout: 900

descriptors() { ls -l "/proc/$sampler/fd" 2>/dev/null | grep -vc memfd:heaptap; }
regions() { ls -l "/proc/$sampler/fd" 2>/dev/null | grep -c '/memfd:heaptap (deleted)'; }
resident_kib() { sed -n 's/^RssAnon:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$sampler/status"; }
# A number that comes again, on a machine with few, makes an exit-2 of it.
profiles() { find out -name 'heaptap.one.*.exit*.pb.gz' | wc -l; }

# written N: their profiles are there, and the sampler holds as much as half a second ago
written() {
  [ $(($(profiles) + $(cat missing 2>/dev/null | wc -l))) -ge "$1" ] || return 1
  local before
  before=$(descriptors)
  sleep 0.5
  [ "$before" = "$(descriptors)" ]
}
# holds_no_more_than DESCRIPTORS, and the regions of what runs and the 256 spare ones
holds_no_more_than() { [ "$(descriptors)" -le "$1" ] && [ "$(regions)" -le 260 ]; }

# Each process runs another file: the same program under another build id, which is gone when the process is.
test_a_thousand_short_processes() {
  cat >run.py <<'PYTHON'
import os, subprocess, sys, time
program = open(sys.argv[1], "rb").read()
build_id = bytes.fromhex(sys.argv[2])
assert program.count(build_id) == 1
waiting = []
def run(first, last):
    for number in range(first, last):
        with open("one", "wb") as copy:
            copy.write(program.replace(build_id, number.to_bytes(20, "big")))
        os.chmod("one", 0o755)
        process = subprocess.Popen(["./one", "/dev/null", "1", "20"])
        assert process.wait() == 0
        os.unlink("one")
        # What waits to be written is not what this is about: let 20 do so at most.
        waiting.append("out/heaptap.one.%d.exit.pb.gz" % process.pid)
        deadline = time.time() + 10
        while len(waiting) > 20 and not os.path.exists(waiting[0]):
            time.sleep(0.005)
            if time.time() > deadline:
                # The sampler had no region ready for it, on a busy machine.
                print(waiting[0], file=open("missing", "a"))
                break
        del waiting[:-20]
def pause(name):
    os.mkdir(name)
    while os.path.exists(name):
        time.sleep(0.01)
# More than the 128 files that are kept open for their return.
run(0, 200)
pause("first")
run(200, 1200)
pause("second")
PYTHON
  id=$(readelf -n "$targets/truth" | sed -n 's/.*Build ID: //p')
  "$heaptap" record -q --symbols raw --no-peak -p 1 -o out/ python3 run.py "$targets/truth" "$id" &
  front=$!
  wait_for 120 test -e first
  sampler=$(pgrep -P $front -x heaptap-sampler)
  wait_for 120 written 200
  fds=$(descriptors) kib=$(resident_kib)
  rmdir first
  wait_for 600 test -e second
  wait_for 240 written 1200
  # How many of the 128 files were opened before they were gone differs, and on a busy machine none of the first 200 may have
  # been; one of each process would be 1000.
  wait_for 60 holds_no_more_than $((fds + 128 + 16))
  # The books, stacks and maps of one process are some 200 KiB. What remains is how the freed lies scattered in the heap; what
  # was freed is returned to the kernel every two seconds.
  holds_little() { [ "$(resident_kib)" -le $((kib + 6000)) ]; }
  (wait_for 10 holds_little) || fail "KiB: $kib after 200 processes, $(resident_kib) after 1200"
  echo "$fds descriptors and $kib KiB after 200 processes, $(descriptors) and $(resident_kib) after 1200"
  rmdir second
  wait $front
}
