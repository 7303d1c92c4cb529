#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server that takes profiles as Pyroscope, Parca (gRPC) and OTLP do, and can misbehave.

    tests/push_server.py FOLDER [PORT]

Listens on a free port (or PORT) of 127.0.0.1, which it writes to FOLDER/port, by TLS if there is FOLDER/key.pem with
FOLDER/cert.pem: HTTP/1.1, and HTTP/2 without TLS for a client
that begins so (python3-h2). Each request is kept: FOLDER/NNNN.json has method, path, headers and, decoded with
Google's protobuf library from the .proto files of push/, labels and ids; FOLDER/NNNN-M.pb.gz the profiles in it,
for pprof's own readers.

FOLDER/plan says how to answer: a line per request, the last one for all that follow; without it "ok".

    ok, 400 TEXT, 429 RETRY_AFTER, 500, 404push (404 on Push only), html (200, a proxy's page), empty (200, no type),
    redirect URL, garbage, never, headers (without end), body (without end), cut (breaks off), trickle,
    grpc CODE TEXT, notrailers,
    503with TEXT (503 if the body has it)
"""

import errno
import gzip
import json
import os
import random
import socket
import ssl
import subprocess
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
folder = sys.argv[1]
lock = threading.Lock()
count = len([name for name in os.listdir(folder) if name.endswith(".json")])


def messages():
    """The modules that protoc makes of our .proto files."""
    made = os.path.join(folder, "modules")
    os.makedirs(made, exist_ok=True)
    for name in "pyroscope", "parca", "otlp":
        subprocess.run(["protoc", f"--proto_path={TOP}/push", f"--python_out={made}", f"{name}.proto"], check=True)
    sys.path.insert(0, made)
    return [__import__(name + "_pb2") for name in ("pyroscope", "parca", "otlp")]


pyroscope, parca, otlp = messages()


def plan():
    """How to answer this request."""
    path = os.path.join(folder, "plan")
    with lock:
        try:
            with open(path, encoding="utf-8") as text:
                lines = text.read().splitlines()
        except FileNotFoundError:
            return ["ok"]
        if len(lines) > 1:
            with open(path + ".new", "w", encoding="utf-8") as text:
                text.write("\n".join(lines[1:]) + "\n")
            os.rename(path + ".new", path)
        return lines[0].split(" ", 2) if lines else ["ok"]


def labels_of(pairs):
    names = [pair.name for pair in pairs]
    assert len(set(names)) == len(names), f"duplicate label names: {names}"
    return {pair.name: pair.value for pair in pairs}


def take_apart(path, headers, body):
    """What the request says and the profiles in it."""
    if path.endswith("/push.v1.PusherService/Push"):
        message = pyroscope.PushRequest.FromString(body)
        series, = message.series
        return {"labels": labels_of(series.labels), "id": series.samples[0].id}, [
            sample.raw_profile for sample in series.samples]
    if path.endswith("/WriteRaw"):
        assert body[0] == 0 and int.from_bytes(body[1:5], "big") == len(body) - 5, "not one frame of gRPC"
        message = parca.WriteRawRequest.FromString(body[5:])
        series, = message.series
        return {"labels": labels_of(series.labels.labels)}, [sample.raw_profile for sample in series.samples]
    if path.startswith("/ingest") or "/ingest?" in path:
        return {}, [body]
    if path.endswith("/v1development/profiles"):
        return {"otlp": otlp_summary(otlp.ExportRequest.FromString(body))}, []
    return {}, []


def otlp_summary(message):
    """Totals by sample type and by leaf function, after looking at every index."""
    d = message.dictionary
    assert d.strings[0] == "" and not d.mappings[0].ListFields() and not d.stacks[0].ListFields()
    resource, = message.resource_profiles
    scope, = resource.scope_profiles
    totals, leaves = {}, {}
    for profile in scope.profiles:
        name = f"{d.strings[profile.sample_type.type]}/{d.strings[profile.sample_type.unit]}"
        for sample in profile.samples:
            value, = sample.values
            totals[name] = totals.get(name, 0) + value
            locations = [d.locations[at] for at in d.stacks[sample.stack].locations]
            for location in locations:
                assert d.mappings[location.mapping] is not None
            for attribute in sample.attributes:
                assert d.strings[d.attributes[attribute].key]
            leaf = d.strings[d.functions[locations[0].lines[0].function].name] if locations else ""
            leaves[leaf] = leaves.get(leaf, 0) + value
        assert len(profile.profile_id) == 16
    return {"attributes": {pair.key: pair.value.text for pair in resource.resource.attributes}, "totals": totals,
            "leaves": leaves}


def keep(method, path, headers, body):
    """Writes the request down; its number."""
    global count
    with lock:
        count += 1
        number = count
    stem = os.path.join(folder, f"{number:04}")
    said = {"method": method, "path": path, "headers": headers, "bytes": len(body), "time": time.time()}
    try:
        more, profiles = take_apart(path, headers, body)
        said.update(more)
    except Exception as fault:  # the test looks for it
        said["fault"], profiles = repr(fault), []
    for i, profile in enumerate(profiles):
        with open(f"{stem}-{i}.pb.gz", "wb") as out:
            out.write(profile)
        said.setdefault("raw_bytes", []).append(len(gzip.decompress(profile)))
    with open(stem + ".new", "w", encoding="utf-8") as out:
        json.dump(said, out)
    os.rename(stem + ".new", stem + ".json")
    return number


def outcome(number, what):
    with open(os.path.join(folder, "log"), "a", encoding="utf-8") as out:
        out.write(f"{number} {what}\n")


# ---- HTTP/1.1


def answer_1(connection, status, headers=(), body=b""):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers]
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def good(path):
    """Headers and body of the answer that means: taken."""
    if "PusherService" in path:
        return ["Content-Type: application/proto"], b""
    if path.endswith("/v1development/profiles"):
        return ["Content-Type: application/x-protobuf"], b""
    return [], b""


def misbehave_1(connection, words, path, body):
    kind = words[0]
    if kind == "garbage":
        connection.sendall(bytes(range(256)) * 16)
    elif kind == "never":
        connection.recv(1)
    elif kind == "headers":
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
    elif kind == "body":
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n\r\n")
        while True:
            connection.sendall(b"\0" * 65536)
    elif kind == "trickle":
        for byte in b"HTTP/1.1 200 OK\r\n" + b"X" * 10000:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)
    elif kind == "redirect":
        answer_1(connection, 307, ["Location: " + words[1]])
    elif kind == "html":
        answer_1(connection, 200, ["Content-Type: text/html"], b"<html>please log in</html>")
    elif kind == "empty":
        answer_1(connection, 200)
    elif kind == "429":
        answer_1(connection, 429, ["Retry-After: " + words[1], "Content-Type: application/json"],
            b'{"code":"resource_exhausted","message":"too much"}')
    elif kind == "404push" and "PusherService" in path:
        answer_1(connection, 404, ["Content-Type: text/plain"], b"404 page not found")
    elif kind == "503with" and words[1].encode() in body:
        answer_1(connection, 503)
    elif kind.isdigit():
        answer_1(connection, int(kind), ["Content-Type: application/json"],
            json.dumps({"code": "x", "message": " ".join(words[1:])}).encode())
    else:
        return False
    return True


def serve_1(connection, begun):
    data = begun
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    request, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = request.split(" ")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    length = int(headers.get("content-length", 0))
    words = plan()
    if words[0] == "cut":
        outcome(0, "cut")
        return
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            return
        body += more
    number = keep(method, path, headers, body)
    outcome(number, " ".join(words))
    if not misbehave_1(connection, words, path, body):
        extra, reply = good(path)
        answer_1(connection, 200, extra, reply)


# ---- HTTP/2


def answer_2(server, connection, stream, words):
    kind = words[0]
    plain = [(":status", "200"), ("content-type", "application/grpc")]
    if kind == "ok":
        server.send_headers(stream, plain)
        server.send_data(stream, b"\0\0\0\0\0")
        server.send_headers(stream, [("grpc-status", "0")], end_stream=True)
    elif kind == "grpc":
        server.send_headers(
            stream, plain + [("grpc-status", words[1]), ("grpc-message", words[2])], end_stream=True)
    elif kind == "notrailers":
        server.send_headers(stream, plain)
        server.send_data(stream, b"\0\0\0\0\0", end_stream=True)
    elif kind == "garbage":
        connection.sendall(bytes(range(256)))
        return False
    elif kind == "never":
        return True
    elif kind == "cut":
        return False
    else:
        server.send_headers(stream, [(":status", kind)], end_stream=True)
    connection.sendall(server.data_to_send())
    return True


def serve_2(connection, begun):
    server = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    connection.sendall(server.data_to_send())
    headers, bodies, data = {}, {}, begun
    while data:
        for event in server.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                headers[event.stream_id] = {
                    (key if isinstance(key, str) else key.decode()): (
                        value if isinstance(value, str) else value.decode()) for key, value in event.headers}
                bodies[event.stream_id] = b""
            elif isinstance(event, h2.events.DataReceived):
                bodies[event.stream_id] += event.data
                server.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                head = headers[event.stream_id]
                number = keep(head[":method"], head[":path"], head, bodies[event.stream_id])
                words = plan()
                outcome(number, " ".join(words))
                if not answer_2(server, connection, event.stream_id, words):
                    return
        connection.sendall(server.data_to_send())
        data = connection.recv(65536)


def encrypted(connection):
    """The connection by TLS, if the test gave us a key."""
    key = os.path.join(folder, "key.pem")
    if not os.path.exists(key):
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "cert.pem"), key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context.wrap_socket(connection, server_side=True)


def serve(connection):
    with connection:
        try:
            connection = encrypted(connection)
            begun = connection.recv(65536)
            if begun.startswith(b"PRI * HTTP/2.0"):
                serve_2(connection, begun)
            elif begun:
                serve_1(connection, begun)
        except OSError:
            pass


def listen():
    """On a port that the kernel gives to nobody by itself: a server that ends gets it back when it starts again."""
    if len(sys.argv) > 2:
        return socket.create_server(("127.0.0.1", int(sys.argv[2])))
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as span:
        given = range(int(span.readline().split()[0]), 1 << 16)
    ports = range(10000, 32000)
    ports = [port for port in ports if port not in given] or ports
    while True:
        try:
            return socket.create_server(("127.0.0.1", random.choice(ports)))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def main():
    listener = listen()
    with open(os.path.join(folder, "port.new"), "w", encoding="utf-8") as out:
        out.write(str(listener.getsockname()[1]))
    os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


main()
