# SPDX-License-Identifier: Apache-2.0
# The region socket of a root session, with other users' processes at it that mean harm.
# timeout: 90

# hostile WHAT: python of uid 65534 within the session, until it is killed; makes the file `hostile`
cat_hostile() {
  cat >hostile.py <<'EOF'
import array, mmap, os, socket, sys, time
path, cookie = os.environ["HEAPTAP"].split(",")[0].rsplit(":", 1)
name = next(line.split()[-1][1:] for line in open("/proc/net/unix") if "@heaptap" + path in line)
os.environ.pop("LD_PRELOAD")

def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(2)
    s.connect("\0" + name)
    return s

def hold():
    held, misses = [], 0
    while misses < 20 and len(held) < 2000:
        try:
            s = connect()
            s.send(int(cookie, 16).to_bytes(8, "little"))
            _, ancillary, _, _ = s.recvmsg(1, socket.CMSG_SPACE(4))
            fds = array.array("i")
            fds.frombytes(ancillary[0][2])
            held.append(mmap.mmap(fds[0], 4096))
            os.close(fds[0])
        except (OSError, IndexError):
            misses += 1
        s.close()
    print(len(held), flush=True)
    open("hostile", "w").close()
    time.sleep(1000)

def fill():
    silent = []
    while True:
        try:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.setblocking(False)
            s.connect("\0" + name)
            silent.append(s)
        except OSError:
            if len(silent) > 300:
                silent = silent[200:]
            open("hostile", "w").close()

{"hold": hold, "fill": fill}[sys.argv[1]]()
EOF
  cat >session.sh <<EOF
setpriv --reuid 65534 --regid 65534 --clear-groups python3 hostile.py \$1 >held &
until [ -e hostile ]; do sleep 0.05; done
cp $targets/truth roots
./roots /dev/null 1 0
for i in \$(seq \$2); do
  setpriv --reuid 1234 --regid 1234 --clear-groups $targets/truth /dev/null 1 0
done
kill \$!
EOF
}

# session HOSTILE PROGRAMS ENOUGH: into folder ./out, again if fewer profiles are there: a program waits 200 ms for its
# region, which is little on a busy machine
session() {
  local attempt
  for attempt in 1 2 3 4 5; do
    rm -rf out hostile # a second attempt waits for its own hostile process
    record -p 1K -o "$PWD/out/" sh session.sh "$1" "$2" 2>err
    [ "$(find out -name 'heaptap.roots.*.exit.pb.gz' | wc -l)" = 1 ] || continue
    [ "$(find out -name 'heaptap.truth.*.exit.pb.gz' | wc -l)" -lt "$3" ] || break
  done
}

test_a_process_that_hoards_regions() {
  need_root
  stage truth
  cat_hostile
  ulimit -n 1024
  session hold 5 2 # where the hostile process may have all regions, none of the five has one
  at_least 1 "$(cat held)" 'regions that the hostile process has'
  at_least -100 "-$(cat held)" 'regions that the hostile process has, negative'
  equal 1 "$(ls out/heaptap.roots.*.exit.pb.gz | wc -l)" 'profiles of the program of root'
  at_least 2 "$(ls out/heaptap.truth.*.exit.pb.gz | wc -l)" 'profiles of the programs of another user, of 5'
  matches 'not profiled: [0-9]+ programs? (without a free region|that did not finish attaching)' err
}

test_a_full_backlog() {
  need_root
  stage truth
  cat_hostile
  # A place in the backlog is waited for, but not for long: without the wait 3 of 10 find one.
  session fill 20 12
  equal 1 "$(ls out/heaptap.roots.*.exit.pb.gz | wc -l)" 'profiles of the program of root'
  at_least 12 "$(ls out/heaptap.truth.*.exit.pb.gz | wc -l)" 'profiles of the programs of another user, of 20'
  matches '(refused|dropped) at the region socket: [0-9]+ connections' err
}
