# SPDX-License-Identifier: Apache-2.0
# A process that grows by memory which no sample explains is worth profiles, however few its samples are.

# A forked child without any sample maps 2 MiB again and again, and touches all of it, until there is ./stop. What its
# parent had mapped before is not the child's.
growing() {
  cat >growing.py <<'P'
import mmap, os, time
def touched(bytes):
    pages = mmap.mmap(-1, bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, bytes, 4096):
        pages[at] = 1
    return pages
kept = [touched(64 << 20)]
children = []
for child in range(3):
    children.append(os.fork())
    if not children[-1]:
        with open(f"child{child}", "w") as file:
            file.write(str(os.getpid()))
        while not os.path.exists("stop"):
            if child == 1 and len(kept) < 200:
                kept.append(touched(2 << 20))
            time.sleep(0.2)
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
P
}

test_a_child_grows() {
  growing
  "$heaptap" record -i 1s -o out/ /usr/bin/python3 growing.py 2>err &
  front=$!
  wait_for 60 eval 'ls out/heaptap.python3."$(cat child1)".0006.pb.gz 2>/dev/null'
  (cd out && "$heaptap" report) >report 2>&1
  touch stop
  wait $front
  cat err report
  matches '^Resident memory grows since ' report
  matches '^Not seen: [0-9.]+ MiB are python.s own pool or other mmap' report
  profile_check out/heaptap.python3."$(cat child1)".{0006,exit}.pb.gz
  equal '' "$(ls out | grep -e "\.$(cat child0)\." -e "\.$(cat child2)\." || :)" 'profiles of those that do not grow'
  matches '^heaptap: Resident memory grows since ' err
  matches "^heaptap: the most resident, python3 \(pid $(cat child1)\):\$" err
  matches '^heaptap: Not seen: [0-9.]+ MiB are python.s own pool or other mmap' err
}
