# SPDX-License-Identifier: Apache-2.0
"""A web shop in Python, for WSGI and ASGI: /sign leaks in a C extension, /user in a dict.

job: gunicorn-3.11
  build: $HERE/venv 3.11 $OUT
  env: PYTHONPATH=$OUT/venv-3.11/own:$HERE
  start: $OUT/venv-3.11/bin/gunicorn -w 3 -b 127.0.0.1:$PORT --log-level warning shop:wsgi
  load: $HERE/load.py http $PORT /sign 150
  expect: grows make_copy|sign
job: gunicorn-3.12
  build: $HERE/venv 3.12 $OUT
  env: PYTHONPATH=$OUT/venv-3.12/own:$HERE PYTHONPERFSUPPORT=1
  start: $OUT/venv-3.12/bin/gunicorn -w 3 -b 127.0.0.1:$PORT --log-level warning shop:wsgi
  load: $HERE/load.py http $PORT /sign 150
  expect: grows make_copy|sign
job: gunicorn-dict-3.11
  record: --mmap
  env: PYTHONPATH=$OUT/venv-3.11/own:$HERE
  start: $OUT/venv-3.11/bin/gunicorn -w 3 -b 127.0.0.1:$PORT --log-level warning shop:wsgi
  load: $HERE/load.py http $PORT /user 100
  expect: grows load_user|Arena|arena
job: gunicorn-dict-3.11-plain
  env: PYTHONPATH=$OUT/venv-3.11/own:$HERE
  start: $OUT/venv-3.11/bin/gunicorn -w 3 -b 127.0.0.1:$PORT --log-level warning shop:wsgi
  load: $HERE/load.py http $PORT /user 100
  expect: unseen --mmap|PYTHONMALLOC
job: gunicorn-dict-3.12
  record: --mmap
  env: PYTHONPATH=$OUT/venv-3.12/own:$HERE PYTHONPERFSUPPORT=1
  start: $OUT/venv-3.12/bin/gunicorn -w 3 -b 127.0.0.1:$PORT --log-level warning shop:wsgi
  load: $HERE/load.py http $PORT /user 100
  expect: grows load_user|Arena|arena
job: uvicorn-attached
  env: PYTHONPATH=$OUT/venv-3.12/own:$HERE
  attach: $OUT/venv-3.12/bin/uvicorn --port $PORT --log-level warning shop:asgi
  load: $HERE/load.py http $PORT /sign 150
  expect: grows make_copy|sign
job: uvicorn-attached-perf
  env: PYTHONPATH=$OUT/venv-3.12/own:$HERE PYTHONPERFSUPPORT=1
  attach: $OUT/venv-3.12/bin/uvicorn --port $PORT --log-level warning shop:asgi
  load: $HERE/load.py http $PORT /sign 150
  expect: grows make_copy|sign
"""
import digest

USERS = {}
BODY = b"x" * 7000


def sign():
    return digest.sign(BODY)


def load_user():
    for _ in range(40):
        USERS[len(USERS)] = {"name": "user %d" % len(USERS), "id": str(len(USERS)), "tags": [1, 2, 3]}
    return len(USERS)


def answer(path):
    return str(sign() if path == "/sign" else load_user()).encode()


def wsgi(environ, start_response):
    body = answer(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["type"] == "http":
        body = answer(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})
