#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A cache without a limit.
#
# job: redis
#   start: redis-server --port $PORT --save --daemonize no
#   load: $HERE/load.py redis $PORT 600
#   expect: grows \S
# job: redis-step
#   start: redis-server --port $PORT --save --daemonize no
#   load: sleep 22; $HERE/load.py redis-step $PORT
#   expect: rose \S
