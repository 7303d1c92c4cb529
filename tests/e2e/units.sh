# SPDX-License-Identifier: Apache-2.0
# `heaptap record` as what a unit of systemd executes, where systemd is process 1: in a virtual machine (make check-lab
# GUEST=amd64-6.1-systemd T=e2e/units). What of it needs no systemd is in notify.sh.
# timeout: 300

[ "$(id -u)" = 0 ] && [ -d /run/systemd/system ] || skip 'needs systemd as process 1, and root: make check-lab'

unit=heaptap-test-$$.service

tidy() {
  systemctl kill -s KILL "$unit" 2>/dev/null || :
  rm -f "/run/systemd/system/$unit"
  systemctl daemon-reload
  systemctl reset-failed "$unit" 2>/dev/null || :
}

# unit LINE...: of [Service]. It is gone at the end of the test.
unit() {
  printf '%s\n' '[Service]' "WorkingDirectory=$PWD" "$@" >"/run/systemd/system/$unit"
  systemctl daemon-reload
  trap tidy EXIT
}

# property NAME
property() {
  systemctl show -P "$1" "$unit"
}

is() {
  [ "$(property "$1")" = "$2" ]
}

journal() {
  journalctl --quiet --no-pager -o cat -u "$unit" >journal.out
}

# comes_to PROPERTY VALUE
comes_to() {
  wait_for 60 is "$1" "$2" || { systemctl status --no-pager -l "$unit" >&2; journal; cat journal.out >&2; return 1; }
}

redis="/usr/bin/redis-server --port 0 --unixsocket $PWD/s --save '' --logfile $PWD/redis.log"

answers() {
  [ "$(redis-cli -s "$PWD/s" ping 2>/dev/null)" = PONG ]
}

# stopped_well: one profile of a redis that was told to end once
stopped_well() {
  equal inactive "$(property ActiveState)"
  equal success "$(property Result)"
  equal 1 "$(grep -c 'Received SIGTERM' redis.log)" 'SIGTERM that redis got'
  "$heaptap" check "$(only heaptap.redis-*.exit.pb.gz)"
  rm -f heaptap.*.pb.gz redis.log
}

# Whoever gets the SIGTERM: all, the front and then all, the front alone.
test_stop() {
  for kill_mode in control-group mixed process; do
    unit Type=exec "KillMode=$kill_mode" "ExecStart=$heaptap record -p 16K $redis"
    systemctl start "$unit"
    wait_for 60 answers
    systemctl stop "$unit"
    stopped_well
  done
}

# COMMAND says when it is ready, and is believed.
test_notify() {
  unit Type=notify NotifyAccess=main "ExecStart=$heaptap record -p 16K $redis --supervised systemd" TimeoutStartSec=250
  systemctl start "$unit"
  answers || fail 'active before it was ready'
  equal 'Ready to accept connections' "$(property StatusText)"
  equal heaptap "$(cat "/proc/$(property MainPID)/comm")"
  systemctl restart "$unit"
  answers || fail 'active before it was ready'
  systemctl stop "$unit"
  equal 2 "$(ls heaptap.redis-*.exit.pb.gz | wc -l)" 'profiles of two lives'
  "$heaptap" check heaptap.redis-*.exit.pb.gz
}

# A program that tells what it gets, and is watched.
watched() {
  cat >watched.py <<'P'
import os, signal, socket, time
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.connect('\0' + os.environ['NOTIFY_SOCKET'][1:])
hups = 0
def on_hup(*_):
    global hups
    hups += 1
    manager.send(b'STATUS=%d' % hups)
signal.signal(signal.SIGHUP, on_hup)
manager.send(b'READY=1\nSTATUS=0')
assert os.environ['WATCHDOG_PID'] == str(os.getpid())
until = time.monotonic() + float(os.environ['PINGS_S'])
kept = []
while True:
    if time.monotonic() < until:
        manager.send(b'WATCHDOG=1')
        kept.append(bytes(100000))
    time.sleep(0.2)
P
}

test_reload_once() {
  watched
  unit Type=notify WatchdogSec=60 Environment=PINGS_S=9999 "ExecStart=$heaptap record -p 16K python3 watched.py" \
    'ExecReload=/bin/kill -HUP $MAINPID'
  systemctl start "$unit"
  for hups in 1 2 3; do
    systemctl reload "$unit"
    comes_to StatusText $hups
  done
  systemctl stop "$unit"
  "$heaptap" check "$(only heaptap.python3*.exit.pb.gz)"
}

# Who falls silent is ended; the profile of a program that hangs is there.
test_watchdog() {
  watched
  unit Type=notify "WatchdogSec=$(seconds 2)" "Environment=PINGS_S=$(seconds 3)" \
    "ExecStart=$heaptap record -p 16K python3 watched.py"
  systemctl start "$unit"
  comes_to ActiveState failed
  equal watchdog "$(property Result)"
  "$heaptap" check "$(only heaptap.python3*.exit.pb.gz)"
}

# The exit status is COMMAND's: what Restart= goes by.
test_failure() {
  unit Type=exec "ExecStart=$heaptap record -p 1 -o x.pb.gz sh -c 'exit 42'"
  systemctl start "$unit" || :
  comes_to ActiveState failed
  equal 42 "$(property ExecMainStatus)"
  unit Type=exec "ExecStart=$heaptap record -p 1 -o x.pb.gz sh -c 'kill -ABRT \$\$\$\$'"
  systemctl start "$unit" || :
  comes_to ActiveState failed
  equal 134 "$(property ExecMainStatus)"
}

# The kernel kills the largest process of the cgroup; that is not the sampler.
test_out_of_memory() {
  unit Type=exec MemoryMax=96M MemorySwapMax=0 \
    "ExecStart=$heaptap record -p 64K python3 -c 'x = [bytearray(b\"x\") * 100000 for i in range(100000)]'"
  systemctl start "$unit"
  comes_to ActiveState failed
  equal oom-kill "$(property Result)"
  journal
  matches 'was killed by SIGKILL' journal.out
  "$heaptap" check "$(only heaptap.python3*.exit.pb.gz)"
  at_least 30000000 "$(total_of "$(only heaptap.python3*.exit.pb.gz)" inuse_space)" 'bytes in use when it was killed'
}

# What COMMAND leaves behind is the unit's main process, and is profiled until it ends.
test_forking() {
  unit Type=forking "PIDFile=$PWD/pid" TimeoutStartSec=250 \
    "ExecStart=$heaptap record -p 16K $redis --daemonize yes --pidfile $PWD/pid"
  systemctl start "$unit"
  wait_for 60 answers
  equal "$(cat pid)" "$(property MainPID)"
  systemctl stop "$unit"
  equal success "$(property Result)"
  equal 2 "$(ls heaptap.redis-*.exit.pb.gz | wc -l)" 'profiles of COMMAND and of what it left'
  "$heaptap" check heaptap.redis-*.exit.pb.gz
}
