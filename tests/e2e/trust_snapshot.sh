# SPDX-License-Identifier: Apache-2.0
# `heaptap snapshot` in folders where others may have been first: it follows, removes, believes and prints nothing there.
# timeout: 60

uid=4243
folder=/tmp/heaptap-$uid

as_stranger() {
  setpriv --reuid $uid --regid $uid --clear-groups "$@"
}

# The folders have fixed names: one test at a time.
alone() {
  need_root
  exec 8>/tmp/heaptap-tests.trust_snapshot.lock
  flock 8
  rm -rf $folder
  trap "rm -rf $folder" EXIT
}

# A process of the stranger's own; sets his.
his_process() {
  setpriv --reuid $uid --regid $uid --clear-groups sleep 60 8>&- &
  his=$!
  wait_for 10 grep -q "^Uid:.$uid" /proc/$his/status
}

# fake WORDS...: a sampler of the stranger's that answers with these packets; the last one for ever
fake() {
  as_stranger mkdir -m 700 $folder
  as_stranger python3 - $folder/1.sock "$@" 8>&- <<'EOF' &
import os, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind(sys.argv[1])
server.listen(8)
open(sys.argv[1] + ".listens", "w").close()
while True:
    client, _ = server.accept()
    client.recv(100)
    try:
        for word in sys.argv[2:]:
            client.send(word.encode().decode("unicode_escape").encode())
        while True:
            client.send(sys.argv[-1].encode().decode("unicode_escape").encode())
    except OSError:
        client.close()
EOF
  fake=$!
  wait_for 10 test -e $folder/1.sock.listens
}

test_a_folder_that_is_a_link() {
  alone
  mkdir -m 700 service
  touch service/service.sock
  chown -R $uid service
  as_stranger ln -s "$PWD/service" $folder
  status_of "$heaptap" snapshot "$$" # not --all: others have sessions here, too
  [ -e service/service.sock ] || fail 'a file in the folder behind the link is gone'
}

test_a_folder_of_another_owner() {
  alone
  mkdir $folder
  touch $folder/service.sock
  status_of "$heaptap" snapshot "$$"
  [ -e $folder/service.sock ] || fail "a file of the folder that only has the stranger's name is gone"
}

test_files_that_are_no_sockets_stay() {
  alone
  as_stranger mkdir -m 700 $folder
  touch precious
  as_stranger ln -s "$PWD/precious" $folder/link.sock
  as_stranger touch $folder/file.sock
  as_stranger mkfifo $folder/fifo.sock
  status_of "$heaptap" snapshot "$$"
  equal 3 "$(find $folder -name '*.sock' | wc -l)" 'left of what is no socket'
}

test_a_socket_that_nobody_listens_at_is_removed() {
  alone
  his_process
  as_stranger mkdir -m 700 $folder
  as_stranger python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(sys.argv[1])' $folder/1.sock
  status_of "$heaptap" snapshot $his
  kill $his
  [ ! -e $folder/1.sock ] || fail 'it is still there'
}

test_a_stranger_does_not_answer_for_roots_process() {
  alone
  fake 'asked 1' "written $$ /tmp/evil.pb.gz"
  equal 1 "$(status_of timeout "$(seconds 20)" "$heaptap" snapshot $$)" 'exit status'
  kill $fake
  equal '' "$(cat out)" 'standard output'
  matches "pid $$ is not being profiled" err
}

test_a_stranger_says_what_he_likes() {
  alone
  his_process
  fake 'asked 1' "written $his /tmp/\x1b[31m\x9b31m\u202eevil.pb.gz"
  equal 0 "$(status_of timeout "$(seconds 20)" "$heaptap" snapshot $his)" 'exit status'
  kill $fake $his
  equal '/tmp/?[31m??31m???evil.pb.gz' "$(cat out)" 'standard output'
}

# his_sessions FOLDER LIVING KILLED: so many samplers of his in that folder, each with a profile to tell of, and the sockets
# of samplers that were killed; sets fake
his_sessions() {
  as_stranger mkdir -m 700 "$1"
  (cd "$1" && exec setpriv --reuid $uid --regid $uid --clear-groups python3 - "$2" "$3" 8>&- <<'EOF') &
import os, selectors, socket, sys
living, killed = int(sys.argv[1]), int(sys.argv[2])
servers = selectors.DefaultSelector()
for i in range(living + killed):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(f"{i + 1}.sock")
    server.listen(8)
    if i < living:
        servers.register(server, selectors.EVENT_READ)
    else:
        server.close()
asked = 0
open("listens", "w").close()
while True:
    for key, _ in servers.select():
        client, _ = key.fileobj.accept()
        asked += 1
        open("asked", "w").write(f"{asked}\n")
        if client.recv(100) == b"snapshot all":
            client.send(b"asked 1")
            client.send(f"written {os.getpid()} /profile/{asked}".encode())
        else:
            client.send(b"unknown")
        client.close()
EOF
  fake=$!
  wait_for 20 test -e "$1/listens"
}

# Each may keep root waiting for a while: so their number has an end, and their time is one for all of them.
test_a_stranger_has_sockets_without_end() {
  alone
  his_process
  his_sessions $folder 200 0
  equal 1 "$(status_of "$heaptap" snapshot $his)" 'exit status'
  kill $fake $his
  equal 64 "$(cat $folder/asked)" 'sockets that were asked'
  matches "^heaptap: $folder: 136 more sessions of user $uid were not asked" err
  ! grep 'is not being profiled' err || fail 'that is not known'
}

# all_in FOLDER: `heaptap snapshot --all` where that is /tmp: others have sessions in the real one, too
all_in() {
  unshare -m true 2>/dev/null || skip 'no mount namespace can be made'
  status_of unshare -m bash -c 'exec 9<"$1" && mount --bind "$2" /tmp && mount -t tmpfs none /run &&
    exec /proc/self/fd/9 snapshot --all' sh "$heaptap" "$1"
}

# su keeps the variables: what root believes by one of them must be root's. What --socket names may be anybody's.
test_a_variable_of_a_stranger() {
  need_root
  his_process
  mkdir -m 777 tmp
  folder=$PWD/tmp/heaptap-$uid
  fake unknown
  equal 1 "$(HEAPTAP_SOCKET=$folder/1.sock status_of "$heaptap" status)" 'exit status'
  matches 'is served by another user, who is not root' err
  status_of "$heaptap" status --socket $folder/1.sock
  ! grep -q 'is served by another user' err || fail "$(cat err)"
  kill $fake $his
}

# With --all he is not asked about a process: he may speak of his own ones alone.
test_a_stranger_answers_for_others() {
  need_root
  his_process
  sleep 60 &
  roots=$!
  sleep 0 &
  ended=$!
  wait $ended
  folder=$PWD/tmp/heaptap-$uid
  mkdir tmp
  chmod 777 tmp
  fake 'asked 4' "written $roots /roots" "written $his /his" "failed $roots of root" "written $ended /ended"
  equal 0 "$(all_in tmp)" 'exit status'
  kill $fake $his $roots
  equal /his "$(cat out)" 'standard output'
  ! grep 'of root' err || fail 'he speaks of a process of root'
  matches "^heaptap: /tmp/heaptap-$uid: 3 answers of user $uid were left out" err
}

# Those of killed samplers cost the living ones nothing, and who is left out is not left out silently.
test_all_sessions_of_a_user() {
  need_root
  mkdir tmp
  chmod 777 tmp
  his_sessions "$PWD/tmp/heaptap-$uid" 60 300
  equal 0 "$(all_in tmp)" "exit status; $(cat err)"
  kill $fake
  equal 60 "$(grep -c '^/profile/' out)" 'profiles'
  equal 60 "$(ls tmp/heaptap-$uid/*.sock | wc -l)" 'sockets that are left'
  rm -r tmp/heaptap-$uid
  his_sessions "$PWD/tmp/heaptap-$uid" 70 0
  equal 1 "$(all_in tmp)" 'exit status with six more'
  kill $fake
  equal 64 "$(grep -c '^/profile/' out)" 'profiles'
  matches "^heaptap: /tmp/heaptap-$uid: 6 more sessions of user $uid were not asked" err
}

# Else he would have any number of them, each with its own 64 sockets and minute.
test_a_user_has_one_folder_there() {
  need_root
  mkdir tmp
  chmod 777 tmp
  for name in "0$uid" "+$uid" " $uid" $((uid + (1 << 32))); do
    his_sessions "$PWD/tmp/heaptap-$name" 1 0
    equal 1 "$(all_in tmp)" 'exit status'
    kill $fake
    [ ! -e "tmp/heaptap-$name/asked" ] || fail "'heaptap-$name' is searched"
  done
}

test_a_link_to_the_socket_of_another() {
  alone
  his_process
  fake 'asked 1' "written $his /tmp/evil.pb.gz"
  mv $folder elsewhere
  as_stranger mkdir -m 700 $folder
  as_stranger ln -s "$PWD/elsewhere/1.sock" $folder/1.sock
  chmod 711 elsewhere
  status_of timeout "$(seconds 20)" "$heaptap" snapshot $his
  kill $fake $his
  equal '' "$(cat out)" 'standard output'
}

test_my_folder_that_somebody_else_made() {
  alone
  stage
  mkdir -m 755 $folder
  chown 65534 $folder
  status=0
  as_stranger env -u XDG_RUNTIME_DIR "$heaptap" snapshot --all 2>err || status=$?
  equal 1 $status 'exit status'
  matches "$folder is ignored: you must own it, and nobody else may write there" err
  # Nor does record offer what will not work.
  [ ! -e "/run/user/$uid" ] || skip 'the user has another folder'
  as_stranger env -u XDG_RUNTIME_DIR "$heaptap" record -o /dev/null true 2>err
  matches 'no snapshot of it can be asked for, without a control socket' err
  ! grep 'heaptap snapshot' err || fail 'a snapshot is offered'
}
