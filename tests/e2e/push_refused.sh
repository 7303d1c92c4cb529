# SPDX-License-Identifier: Apache-2.0
# `heaptap push --follow` and what a server does not take: it moves aside, is given up, or waits for another token.

. "$top/tests/push.sh"

# Refused for good: moved aside with the answer, the last ten of them; the next ones are sent.
test_follow_rejected() {
  local i
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\n' "$port" >heaptap.conf
  plan '400 no good'
  follow --config heaptap.conf store
  for i in $(seq 12); do
    made "store/$i.pb.gz" $((60 - i)) 3 3 $((100 + i))
  done
  wait_for 30 counted one rejected 12
  plan ok
  made store/last.pb.gz 1 3 3 200
  wait_for 20 counted one sent 1
  follow_end
  equal 10 "$(find "$spool/one/rejected" -name '*.pb.gz' | wc -l)" 'rejected profiles'
  equal 10 "$(find "$spool/one/rejected" -name '*.txt' | wc -l)" 'answers'
  matches 'HTTP 400: .*no good' "$(find "$spool/one/rejected" -name '*.txt' | head -n 1)"
  matches 'one: a profile was refused, it is in .*/push/one/rejected: HTTP 400' follow.err
  "$heaptap" check "$(find "$spool/one/rejected" -name '*.pb.gz' | head -n 1)" || fail 'rejected profile'
}

# One profile that the server can never take keeps no others from it for longer than it is patient; it is counted, and
# what was allocated until then comes with the next one.
test_follow_given_up() {
  local other process
  for other in 78 77; do
    rm -rf store state server
    server
    mkdir store
    printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\ngive-up = 1s\n' "$port" >heaptap.conf
    plan 503
    made store/a.pb.gz 20 5 3 77
    follow --config heaptap.conf store
    wait_for 20 spooled_is one 1
    process=$(find "$spool/one" -maxdepth 1 -name '*.pb.gz' | sed 's/.*-\([0-9a-f]*\)-s.pb.gz/\1/')
    [ $other = 77 ] || plan "503with $process"
    made store/b.pb.gz 10 8 3 $other
    if [ $other = 77 ]; then
      # All are refused: an outage, of which nothing is lost. The sixth is the probe.
      wait_for 60 test -e server/0006.json
      plan ok
      [ "$(said 0006 'r["id"]')" != "$(said 0005 'r["id"]')" ] || fail 'the sixth is no probe'
      wait_for 60 counted one sent 2
      counted one given_up 0 && counted one passed_over 0 || fail "$(cat "$spool/one/counters")"
    else
      wait_for 60 counted one given_up 1
      counted one sent 1 && counted one rejected 0 && counted one dropped 0 || fail "$(cat "$spool/one/counters")"
      matches 'HTTP 503' "$(find "$spool/one/rejected" -name '*.txt')"
      matches 'one: a profile was given up, for the server takes others; it is in .*/push/one/rejected: HTTP 503' follow.err
      plan ok
      made store/c.pb.gz 5 8 3 77
      wait_for 20 counted one sent 2
      equal "$(total_of store/c.pb.gz alloc_space)" \
        "$(total_of "$(ls server/*.pb.gz | tail -n 1)" alloc_space)" 'what was allocated'
    fi
    follow_end
    kill $server_pid
    wait $server_pid || :
  done
}

# A token that cannot be read is no fault of the profile: it waits. What the server says of the token is not printed.
test_follow_token() {
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\nuser = me\ntoken-file = %s/token\n' "$port" "$PWD" >heaptap.conf
  made store/a.pb.gz 9 5 3 77
  follow --config heaptap.conf store
  wait_for 20 grep -q 'one: cannot read the token in .*/token: No such file or directory; again in' follow.err
  spooled_is one 1 || fail 'it does not wait'
  echo 'secret-word' >token
  wait_for 30 counted one sent 1
  counted one rejected 0 || fail "$(cat "$spool/one/counters")"
  # One that has expired loses nothing: all wait for another.
  plan '401 secret-word is no token'
  made store/b.pb.gz 8 5 3 77
  made store/c.pb.gz 7 5 3 78
  denied() { grep -q '^denied [1-9]' "$spool/one/counters"; }
  wait_for 20 denied
  wait_for 20 spooled_is one 2
  echo 'other-word' >token
  plan ok
  wait_for 60 counted one sent 3
  counted one denied 0 && counted one rejected 0 || fail "$(cat "$spool/one/counters")"
  follow_end
  equal "Basic $(printf me:other-word | base64)" "$(said "$(printf %04d "$(requests)")" 'r["headers"]["authorization"]')" token
  matches 'HTTP 401: .*\*\*\* is no token' follow.err
  ! grep -rq secret-word follow.err "$spool" || fail 'the token is written down'
}

# A proxy that knows neither path for a while: what it refuses is refused, and Push is tried again after it.
test_follow_lost_path() {
  server
  mkdir store
  plan '404 a' '404 b' ok
  made store/a.pb.gz 9 5 3 77
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "pyroscope-127.0.0.1-$port" rejected 1
  made store/b.pb.gz 8 5 3 77
  wait_for 20 counted "pyroscope-127.0.0.1-$port" sent 1
  follow_end
  equal /push.v1.PusherService/Push "$(said 0003 'r["path"]')" path
}

# A token that is refused: each profile waits a day for another one, and then moves aside with a line. The day is that of
# the note beside it and of the profile's name, so that it goes on over a restart.
test_follow_denied_for_a_day() {
  local name
  mkdir store
  printf '%s\n' '[push one]' url="parca+http://127.0.0.1:1" "token-file = $PWD/token" >heaptap.conf
  echo wrong-word >token
  made store/a.pb.gz 9 5 3 77
  follow --config heaptap.conf store
  wait_for 20 spooled_is one 1
  follow_end
  # It came two days ago, and has been refused for a day less a minute: it waits.
  name=$(cd "$spool/one" && echo [0-9]*.pb.gz)
  mv "$spool/one/$name" "$spool/one/$(printf %020d $((10#${name%%-*} - 2 * 86400 * 1000000)))-${name#*-}"
  server
  sed -i "s,:1$,:$port," heaptap.conf
  plan '401 no token'
  denied_more_than() {
    [ "$(sed -n 's/^denied //p' "$spool/one/counters")" -gt "$1" ]
  }
  denied_for() {
    sed -i "s/^denied .*/denied 4/; s/^denied_since_s .*/denied_since_s $(($(date +%s) - $1))/" "$spool/one/counters"
  }
  denied_for $((86400 - 600))
  follow --config heaptap.conf store
  wait_for 20 denied_more_than 4
  follow_end
  counted one rejected 0 && spooled_is one 1 || fail "$(cat "$spool/one/counters")"
  # A profile that came just now waits, too, whatever came of those before it.
  made store/b.pb.gz 8 5 3 78
  denied_for $((86400 + 1))
  follow --config heaptap.conf store
  wait_for 20 counted one rejected 1
  wait_for 20 denied_more_than 5
  spooled_is one 1 || fail 'what came just now was moved, too'
  follow_end
  matches 'one: the server has refused the token for a day: a profile was moved to .*/rejected: HTTP 401' follow.err
  [ -s "$(echo "$spool"/one/rejected/*.txt)" ] || fail 'no answer beside it'
  # Another token: what waits is sent, and the day begins anew.
  plan ok
  follow --config heaptap.conf store
  wait_for 60 counted one sent 1
  counted one denied 0 && counted one denied_since_s 0 || fail "$(cat "$spool/one/counters")"
  follow_end
}
