# SPDX-License-Identifier: Apache-2.0
# A program asks for snapshots as fast as it can.

test_a_flood_of_requests() {
  start=$SECONDS
  record -p 1K -i 0 -o prof/ "$targets/trust_ask" 300 2>err
  seconds=$((SECONDS - start + 1))
  count=$(ls prof | grep -cE '\.[0-9]{4}(-[a-z]+)?\.pb\.gz$|again')
  at_least 16 "$count" 'snapshots of the burst'
  at_least "-$((16 + seconds))" "-$count" 'snapshots in all, negative'
  matches 'requests more than one snapshot a second: not all are taken' err
  comment_of prof/heaptap.trust_ask.*.exit.pb.gz >comments
  matches '[0-9]+ snapshot requests of the program refused' comments
}
