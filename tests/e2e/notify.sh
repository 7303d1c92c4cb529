# SPDX-License-Identifier: Apache-2.0
# COMMAND under a service manager: sd_notify(3) through heaptap. tests/notify_manager.py is the manager's side of it (what
# systemd itself does: units.sh, where it is process 1).

# COMMAND: says that it is ready, with a line and a descriptor that the manager must and must not get.
service() {
  cat >service.py <<'P'
import array, os, socket, sys
name = os.environ['NOTIFY_SOCKET']
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.connect('\0' + name[1:] if name[0] == '@' else name)
with open('stored', 'w+') as stored:
    stored.write('kept')
    stored.flush()
    manager.sendmsg([b'READY=1\nMAINPID=1\nSTATUS=of COMMAND'],
                    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [stored.fileno()]))])
manager.send(b'x' * 5000)
manager.send(b'MAINPID=1')
print(os.environ.get('WATCHDOG_PID') == str(os.getpid()))
manager.send(b'STOPPING=1')
sys.exit(3)
P
}

test_messages_of_command_are_ours() {
  service
  cat >wanted <<'W'
from heaptap: READY=1|STATUS=of COMMAND, with kept
from heaptap: STOPPING=1
status 3
W
  for name in "$PWD/manager" @heaptap-test-$$; do
    timeout "$(seconds 60)" python3 "$top/tests/notify_manager.py" "$name" \
      "$heaptap" record -q -o x.pb.gz python3 service.py >got 2>err || fail "$(cat err)"
    equal True "$(head -n 1 err)" "WATCHDOG_PID is COMMAND's"
    diff wanted got >&2 || fail 'the manager got other messages'
  done
  profile_check x.pb.gz
}

# As a shell script's systemd-notify: a process of the same user; not so one of another.
test_who_may_speak() {
  need_root
  cat >say.py <<'P'
import os, socket, sys
name = os.environ['NOTIFY_SOCKET']
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), '\0' + name[1:])
P
  chmod 644 say.py
  printf 'from heaptap: STATUS=child\nfrom heaptap: STATUS=last\nstatus 0\n' >wanted
  timeout "$(seconds 60)" python3 "$top/tests/notify_manager.py" "$PWD/manager" "$heaptap" record -q -o x.pb.gz \
    sh -c "python3 say.py STATUS=child
      setpriv --reuid $other_user --clear-groups python3 say.py STATUS=stranger
      python3 say.py STATUS=last" >got 2>err || fail "$(cat err)"
  diff wanted got >&2 || fail 'the manager got other messages'
}

# A name that leads nowhere is COMMAND's own affair.
test_without_a_manager() {
  equal 0 "$(NOTIFY_SOCKET=/nowhere status_of record -q -o x.pb.gz sh -c 'echo $NOTIFY_SOCKET')"
  equal /nowhere "$(cat out)"
}
