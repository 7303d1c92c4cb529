# SPDX-License-Identifier: Apache-2.0
# Whoever starts `heaptap record` has started COMMAND: SIGKILL ends it, and it learns when the one who started it has gone.
# timeout: 180

# start COMMAND...: in a process group of its own, until it has made ./ready; sets front, sampler and command
start() {
  rm -rf ready out
  setsid "$heaptap" record -i 60s -q -p 1K -o out/ "$@" 2>err &
  front=$!
  wait_for 20 test -s ready
  sampler=$(child_of $front heaptap-sampler)
  command=$(cat ready)
}

# A process that has ended may wait for a parent that is slow, or for ever.
has_ended() { [ ! -e "/proc/$1/exe" ]; }

# ends_with_front NAME: COMMAND does, and its exit profile is there, of NAME
ends_with_front() {
  kill -KILL $front
  wait $front 2>/dev/null || :
  wait_for 20 has_ended "$command"
  wait_for 20 has_ended "$sampler"
  profile_check "out/heaptap.$1.$command.exit.pb.gz"
}

# holds PYTHON: a COMMAND that does that first, says its pid in ./ready, and waits
holds() {
  printf 'import ctypes, os, signal, sys, threading, time\nlibc = ctypes.CDLL(None)\n%s\n' "$1"
  cat <<'P'
held = [bytearray(1000) for _ in range(1000)]
with open('ready.new', 'w') as file:
    file.write(str(os.getpid()))
os.rename('ready.new', 'ready')
while True:
    time.sleep(1000)
P
}

test_sigkill_of_the_front_is_one_of_command() {
  for first in '' \
    'os.setsid()' \
    'libc.prctl(1, signal.SIGUSR2)' \
    'signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))' \
    'for _ in range(4): threading.Thread(target=time.sleep, args=(1000,)).start()'; do
    holds "$first" >holds.py
    start python3 holds.py
    ends_with_front python3
  done
}

test_sigkill_of_a_front_whose_command_is_stopped() {
  holds '' >holds.py
  start python3 holds.py
  kill -STOP "$command"
  ends_with_front python3
  start python3 holds.py
  kill -STOP $front
  ends_with_front python3
}

# Each of the others may have gone, or hang.
test_sigkill_of_the_front_without_the_others() {
  holds '' >holds.py
  start python3 holds.py
  kill -KILL "$sampler"
  wait_for 20 grep -q 'the sampler died' err
  kill -KILL $front
  wait_for 20 has_ended "$command"
  start python3 holds.py
  kill -STOP "$sampler" "$(child_of $front heaptap-parent)"
  kill -KILL $front
  wait_for 20 has_ended "$command"
  kill -CONT "$sampler"
  wait_for 20 has_ended "$sampler"
}

# SIGKILL for the whole group is not for those who have left it.
test_sigkill_of_the_group() {
  holds '' >holds.py
  start python3 holds.py
  kill -KILL -- -$front
  wait_for 20 has_ended "$command"
  holds 'os.setsid()' >holds.py
  start python3 holds.py
  witness=$(child_of $front heaptap-witness) parent=$(child_of $front heaptap-parent)
  kill -KILL -- -$front
  for each in $front "$witness" "$parent"; do
    wait_for 20 has_ended "$each"
  done
  kill -TERM "$command" || fail 'COMMAND, which has left the group, was killed'
  wait_for 20 has_ended "$sampler"
}

# About when COMMAND begins.
test_sigkill_when_command_begins() {
  cat >begins.py <<'P'
import os, signal, subprocess, sys, time
command = ["sh", "-c", "echo >>began; exec sleep 10000"]
limit = time.time() + 60 * int(os.environ["TEST_TIME_FACTOR"])

def left_of(group):
    """What runs of it; who has ended may wait for a slow parent."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            yield name

def begun():
    return os.path.getsize("began") if os.path.exists("began") else 0

delay = 0.001
while begun() < 20:
    before = begun()
    child = subprocess.Popen([sys.argv[1], "record", "-q", "-o", "out/", *command], stderr=subprocess.DEVNULL,
                             start_new_session=True)
    time.sleep(delay)
    child.kill()
    child.wait()
    while any(left_of(child.pid)):
        if time.time() > limit:
            sys.exit(f"after {delay} s: left are {list(left_of(child.pid))}")
        time.sleep(0.01)
    delay *= 0.95 if begun() > before else 1.15
P
  python3 begins.py "$heaptap"
}

# As supervisors do: what COMMAND held is free for the next.
test_a_supervisor_that_starts_it_again() {
  cat >server.py <<'P'
import os, socket, sys, time
server = socket.socket()
end = time.time() + float(sys.argv[2])
while True:
    try:
        server.bind(('127.0.0.1', int(sys.argv[1])))
        break
    except OSError:
        if time.time() > end:
            raise
        time.sleep(0.01)
server.listen()
with open('serves', 'w') as file:
    file.write(str(server.getsockname()[1]))
time.sleep(10000)
P
  port=0
  for round in 1 2 3; do
    rm -f serves
    "$heaptap" record -q -o out/ python3 server.py $port "$(seconds 5)" 2>err &
    front=$!
    wait_for 20 test -s serves
    port=$(cat serves)
    kill -KILL $front
    wait $front 2>/dev/null || :
  done
}

# Those who tell the front that COMMAND is stopped were stopped with it.
test_stopped_as_a_group_and_continued_by_its_pid() {
  holds '' >holds.py
  start python3 holds.py
  group="$front $command $(child_of $front heaptap-witness) $(child_of $front heaptap-parent)"
  all_are() { for each in $group; do grep -q "^State:.$1" "/proc/$each/status" || return 1; done; }
  kill -STOP -- -$front
  wait_for 20 all_are T
  kill -CONT $front
  wait_for 20 all_are '[SR]'
  kill -TERM $front
  wait $front || :
  profile_check "out/heaptap.python3.$command.exit.pb.gz"
}

# ---- the end of the one who has started it

# A supervisor SUPERVISOR of `argv`, which ends as HOW says, and somebody above them who gets what it leaves. Prints what
# COMMAND says of all that, and COMMAND's exit status, as the one who has its pid sees it.
supervise() {
  cat >supervise.py <<'P'
import ctypes, os, signal, subprocess, sys, threading, time
prctl = ctypes.CDLL(None).prctl
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
how, end_signal, subreaper = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
limit = time.time() + 20 * int(os.environ["TEST_TIME_FACTOR"])

def await_file(name):
    while not os.path.exists(name):
        if time.time() > limit:
            sys.exit(f"no {name}")
        time.sleep(0.01)

def before():
    prctl(SET_PDEATHSIG, end_signal)
    prctl(SET_CHILD_SUBREAPER, subreaper)

def begin():
    global child
    child = subprocess.Popen(sys.argv[4:], preexec_fn=before)
    await_file("up")

os.environ["ABOVE"] = str(os.getpid())
prctl(SET_CHILD_SUBREAPER, 1)
supervisor = os.fork()
if supervisor == 0:
    if how == "thread":
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
        open("left", "w").close()
        status = child.wait()
        print("status", status if status >= 0 else 128 - status, flush=True)
        os._exit(0)
    begin()
    with open("pid", "w") as file:
        file.write(str(child.pid))
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)
os.waitpid(supervisor, 0)
if how != "thread":
    open("left", "w").close()
    pid = int(open("pid").read())
    if how == "stop": # whoever has the pid can end it
        await_file("saw")
        os.kill(pid, signal.SIGTERM)
    if how == "kill both":
        await_file("saw")
        os.kill(pid, signal.SIGKILL)
    while time.time() < limit:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            print("status", os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
            break
        time.sleep(0.01)
    else:
        print("it does not end")
P
  cat >program.py <<'P'
import ctypes, os, signal, sys, time
prctl = ctypes.CDLL(None).prctl
SET_PDEATHSIG, GET_PDEATHSIG, GET_CHILD_SUBREAPER = 1, 2, 37
limit = time.time() + 20 * int(os.environ["TEST_TIME_FACTOR"])
ask, then = int(sys.argv[1]), sys.argv[2]

def say(text):
    with open("said", "a") as file:
        file.write(text + "\n")

def await_file(name):
    while not os.path.exists(name) and time.time() < limit:
        time.sleep(0.01)

value = ctypes.c_int()
prctl(GET_PDEATHSIG, ctypes.byref(value))
say(f"signal at the parent's end: {value.value}")
prctl(GET_CHILD_SUBREAPER, ctypes.byref(value))
say(f"subreaper: {value.value}")
mine, r, w = os.getpid(), *os.pipe()
if os.fork() == 0:
    child = os.getpid()
    if os.fork() == 0:
        while os.getppid() == child:
            time.sleep(0.01)
        parents = {mine: "COMMAND", int(os.environ["ABOVE"]): "who is above"}
        os.write(w, parents.get(os.getppid(), "another").encode())
    os._exit(0)
say("parent of an orphan: " + os.read(r, 100).decode())
got = []
for number in signal.SIGTERM, signal.SIGUSR2:
    signal.signal(number, lambda number, frame: got.append(number))
if ask:
    prctl(SET_PDEATHSIG, ask)
parent = os.getppid()
open("up", "w").close()
await_file("left")
if then == "another parent":
    while os.getppid() == parent and time.time() < limit:
        time.sleep(0.01)
    say("another parent" if os.getppid() != parent else "the same parent")
while not got and (ask or then == "a signal") and time.time() < limit:
    open("saw", "w").close()
    time.sleep(0.01)
say(f"signals: {got}")
held = [bytearray(1000) for _ in range(1000)]
sys.exit(7)
P
}

# as_natively HOW SIGNAL SUBREAPER ASKED THEN: natively and recorded: the same is said, and there is an exit profile
as_natively() {
  rm -rf up left pid said saw out
  timeout "$(seconds 40)" python3 supervise.py "$1" "$2" "$3" python3 program.py "$4" "$5" >native
  cat said >>native
  rm -rf up left pid said saw
  timeout "$(seconds 40)" python3 supervise.py "$1" "$2" "$3" "$heaptap" record -q -p 1K -o out/ python3 program.py "$4" "$5" >recorded 2>err
  cat said >>recorded
  diff native recorded >&2 || fail "supervisor's end by $*: natively and recorded; $(cat err)"
  matches "$wanted" recorded
  wait_for 20 eval 'ls out/heaptap.python3.*.exit.pb.gz >/dev/null 2>&1'
  profile_check out/heaptap.python3.*.exit.pb.gz
}

test_the_end_of_the_supervisor() {
  supervise
  wanted='^status 7'
  for how in exit kill; do
    as_natively $how 0 0 0 'another parent'
    as_natively $how 0 0 15 'another parent'
  done
}

# Of a thread of it: COMMAND's parent is the same, and the status is for the supervisor.
test_the_end_of_the_supervisors_thread() {
  supervise
  wanted='^status 7'
  as_natively thread 0 0 0 'nothing'
}

# As in Go's SysProcAttr, or by setpriv: asked for before the exec.
test_a_signal_asked_for_before_the_exec() {
  supervise
  wanted='^status 7'
  as_natively kill 15 0 0 'another parent'
  as_natively exit 12 0 0 'a signal'
  wanted='^status 137'
  as_natively kill 9 0 0 'a signal'
  as_natively exit 0 0 9 'nothing'
  ! command -v setpriv >/dev/null || equal "$(setpriv --pdeathsig TERM setpriv --dump | grep -i parent)" \
    "$(setpriv --pdeathsig TERM "$heaptap" record -q -o x.pb.gz setpriv --dump | grep -i parent)"
}

test_a_subreaper_before_the_exec() {
  supervise
  wanted='^parent of an orphan: COMMAND'
  as_natively kill 0 1 0 'another parent'
  wanted='^parent of an orphan: who is above'
  as_natively kill 0 0 0 'another parent'
}

# `heaptap record ./server & echo $! >pid` in a script that ends: the pid goes on to stand for COMMAND.
test_the_pid_after_the_end_of_the_supervisor() {
  supervise
  wanted='^signals: \[15\]'
  as_natively stop 0 0 0 'a signal'
  wanted='^status 137'
  as_natively 'kill both' 0 0 0 'a signal'
}

# ---- those beside it

# It is not to be killed; whoever does it leaves COMMAND without harm, and nobody knows how it ends.
test_a_parent_that_is_killed() {
  holds 'signal.signal(signal.SIGUSR2, lambda number, frame: open("got", "w").write("x"))' >holds.py
  start python3 holds.py
  kill -KILL "$(child_of $front heaptap-parent)"
  wait_for 20 grep -q 'heaptap-parent was killed: the exit status of python3 will not be known' err
  kill -USR2 $front
  wait_for 20 test -s got
  kill -TERM $front
  status=0
  wait $front || status=$?
  equal 1 $status
  profile_check "out/heaptap.python3.$command.exit.pb.gz"
}

# COMMAND may ask its parent for a snapshot.
test_a_snapshot_from_the_parent() {
  timeout "$(seconds 60)" "$heaptap" record -q -p 1K -i 0 -o out/ \
    sh -c "kill -USR1 \$PPID; until ls out/*.0001.pb.gz; do sleep 0.02; done >/dev/null 2>&1"
  profile_check out/*.0001.pb.gz
}
