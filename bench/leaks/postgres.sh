#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# postgres.sh init|run DATA [PORT]: a session that prepares statements and never deallocates them.
#
# job: postgres
#   build: $HERE/postgres.sh init $OUT/postgres
#   start: $HERE/postgres.sh run $OUT/postgres $PORT
#   load: $HERE/load.py prepare $PORT 60
#   expect: grows CachedPlan|PrepareQuery|Prepared|Template|copyObject|AllocSet
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
case $1 in
  init)
    [ ! -d "$2" ] || exit 0
    mkdir -p "$2"
    chown postgres "$2"
    $as "$bin/initdb" -A trust -U postgres -N "$2" >/dev/null
    ;;
  run) exec $as "$bin/postgres" -D "$2" -p "$3" -k '' -c listen_addresses=127.0.0.1 ;;
esac
