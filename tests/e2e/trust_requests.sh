# SPDX-License-Identifier: Apache-2.0
# A program asks for snapshots as fast as it can.

test_a_flood_of_requests() {
  start=$SECONDS
  record -p 1K -i 0 -o prof/ "$targets/trust_ask" 300 2>err >answers
  seconds=$((SECONDS - start + 1))
  count=$(ls prof | grep -cE '\.[0-9]{4}(-[a-z]+)?\.pb\.gz$|again')
  at_least 16 "$count" 'snapshots of the burst'
  at_least "-$((16 + seconds))" "-$count" 'snapshots in all, negative'
  matches 'requests more than one snapshot a second: not all are taken' err
  comment_of prof/heaptap.trust_ask.*.exit.pb.gz >comments
  refused=$(grep -oE '[0-9]+ snapshot requests of the program refused' comments | grep -oE '^[0-9]+')
  at_least 1 "$refused" 'refused'
  # The program is told: a file for each request that was taken. (One that waited for too long is told 0, and has a file.)
  read -r taken not <answers
  at_least "$refused" "$not" 'answers of 0'
  at_least "-$count" "-$taken" 'answers of 1, negative'
  at_least 1 "$taken" 'answers of 1'
}
