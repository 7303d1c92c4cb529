# SPDX-License-Identifier: Apache-2.0
# What the tests of the daemon share: a daemon that profiles nothing but ./bin/daemon_steps and ./bin/daemon_offer of its
# test's folder, so that tests beside each other do not see each other's processes.

need_root

# configure [LINE...]: writes heaptap.conf; period 1, so that sums are exact
configure() {
  cat >heaptap.conf <<CONF
[service]
profile = no
[service steps]
match.exe = $PWD/bin/*
profile = yes
period = 1
interval = 0
CONF
  printf '%s\n' "$@" >>heaptap.conf
}

start_daemon() {
  [ -e bin/heaptap ] || stage daemon_steps daemon_offer
  [ -e heaptap.conf ] || configure
  "$heaptap" daemon --config heaptap.conf --store store --socket "$PWD/run/control" -v "$@" 2>>daemon.log &
  daemon=$!
  started=$((${started:-0} + 1))
  is_started() { [ "$(grep -c 'control socket' daemon.log)" = "$started" ] || ! kill -0 "$daemon"; }
  wait_for 20 is_started
  kill -0 "$daemon" || { cat daemon.log >&2; fail 'the daemon has ended'; }
}

is_gone() {
  ! kill -0 "$daemon" 2>/dev/null
}

stop_daemon() {
  kill -TERM "$daemon"
  status=0
  wait "$daemon" || status=$?
  [ $status = 0 ] || { cat daemon.log >&2; fail "the daemon ended with status $status"; }
}

kill_daemon() {
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null || :
}

# carry STEP... &: a program that carries the library, in place of the subshell: $! is its pid. ( carry STEP... ) else.
carry() {
  [ -e bin/heaptap ] || stage daemon_steps daemon_offer
  LD_PRELOAD=$PWD/bin/libheaptap.so exec "$PWD/bin/daemon_steps" "$@"
}

# profile_of PID KIND: sets profile to the newest
profile_of() {
  profile=$(ls -t store/steps/*/*."$1"."$2"*.pb.gz 2>/dev/null | head -n 1)
  [ -n "$profile" ]
}

# snapshot_all PID: asks the daemon for snapshots of all, and sets profile to that of the process
snapshot_all() {
  before=$(ls store/steps/*/*."$1".*.pb.gz 2>/dev/null | wc -l)
  kill -USR1 "$daemon"
  more() { [ "$(ls store/steps/*/*."$1".*.pb.gz 2>/dev/null | grep -vc peak)" -gt "$before" ]; }
  before=$(ls store/steps/*/*."$1".*.pb.gz 2>/dev/null | grep -vc peak || :)
  wait_for 20 more "$1"
  profile=$(ls -t store/steps/*/*."$1".*.pb.gz | grep -v peak | head -n 1)
}

# identity_of PROFILE: which session and process it is of
identity_of() {
  comment_of "$1" | grep '^session='
}
