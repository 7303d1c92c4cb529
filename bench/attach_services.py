#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attach_services.py BUILD [SERVICE...]: services under load while heaptap attaches to them and detaches from them.

redis (redis-benchmark), nginx (bench/programs/http_load), postgres (pgbench), node and python (http_load too). A repetition is
a new server and six loads of SECONDS (2): one that is not counted, one before, one in which heaptap attaches, one during, one in which
it detaches, one after. Errors are what the clients say, of all six; throughput is that of during and after over that of
before, in the same repetition: the median of REPEATS (5), the least and the most; "alone": repetitions in between, in which
nobody attaches. Last, the functions that allocated most.

Needs root, and `make all bench-bin`.
"""
import glob
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SECONDS = float(os.environ.get("SECONDS_EACH", "2"))
REPEATS = int(os.environ.get("REPEATS", "5"))
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8"}

NODE = """
const http = require('http');
http.createServer((request, response) => {
  const rows = [];
  for (let i = 0; i < 50; i++) rows.push({id: i, name: 'row ' + i, bytes: Buffer.alloc(1024, i).toString('base64').length});
  const text = JSON.stringify(rows);
  response.writeHead(200, {'Content-Length': Buffer.byteLength(text)});
  response.end(text);
}).listen(PORT, '127.0.0.1');
"""
PYTHON = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        text = json.dumps([{'id': i, 'name': 'row %d' % i, 'bytes': 'x' * (1000 + i)} for i in range(20)]).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *arguments): pass
http.server.ThreadingHTTPServer(('127.0.0.1', PORT), Handler).serve_forever()
"""
NGINX = """
daemon off; pid FOLDER/pid; error_log FOLDER/error.log; worker_processes 1;
events {}
http { access_log off; gzip off; keepalive_requests 100000; server { listen 127.0.0.1:PORT; root FOLDER; } }
"""


def say(*words):
    print(*words, flush=True)


def output_of(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, **options)


def children_of(pid):
    return [int(word) for word in output_of("pgrep", "-P", str(pid)).stdout.split()]


class Service:
    """A server in a folder of its own. load: (answers per second, errors)."""

    def __init__(self, build, folder):
        self.build, self.folder, self.server = build, folder, None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text.replace("FOLDER", self.folder).replace("PORT", str(self.port)))
        return f"{self.folder}/{name}"

    def start(self):
        with open(f"{self.folder}/server.log", "ab") as log:
            self.server = subprocess.Popen(self.command(), cwd=self.folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while not self.answers():
            if time.monotonic() > deadline or self.server.poll() is not None:
                raise RuntimeError(f"{type(self).__name__}: the server does not answer")
            time.sleep(0.05)

    def answers(self):
        return self.load(0.05)[1] == 0

    def pids(self):
        return [self.server.pid]

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        return self.server.wait(60)


class Http(Service):
    path = "/"

    def load(self, seconds):
        said = output_of(f"{self.build}/bench/http_load", str(self.port), self.path, "8", str(seconds), "500").stdout
        found = re.match(r"([0-9.]+) per second, (\d+) errors", said)
        return float(found[1]), int(found[2])


class Nginx(Http):
    path = "/page.html"

    def command(self):
        self.write("page.html", "x" * 3000)
        return ["nginx", "-p", self.folder, "-c", self.write("conf", NGINX)]

    def pids(self):
        return [self.server.pid, *children_of(self.server.pid)]


class Node(Http):
    def command(self):
        return ["node", self.write("server.js", NODE)]


class Python(Http):
    def command(self):
        return ["/usr/bin/python3", self.write("server.py", PYTHON)]


class Redis(Service):
    rate = 4000

    def command(self):
        return ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]

    def answers(self): # redis-benchmark would spin for ever
        return output_of("redis-cli", "-p", str(self.port), "ping").stdout.strip() == "PONG"

    def load(self, seconds):
        each = max(100, int(self.rate * seconds / 2))
        began = time.monotonic()
        done = output_of("redis-benchmark", "-p", str(self.port), "-t", "set,get", "-n", str(each), "-r", "100000", "-d", "300",
                         "-c", "20", "--csv")
        rate = 2 * each / (time.monotonic() - began)
        if seconds >= 1:
            Redis.rate = rate
        errors = done.returncode != 0 or len(re.findall(r'^"[SG]ET"', done.stdout, re.M)) != 2
        return rate, int(errors) + done.stderr.count("rror")


class Postgres(Service):
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"]

    def __init__(self, build, folder):
        super().__init__(build, folder)
        self.programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        shutil.chown(folder, "postgres")
        self.run("initdb", "-D", f"{folder}/data", "-A", "trust", "--no-sync")

    def run(self, program, *arguments):
        return output_of(*self.user, f"{self.programs}/{program}", *arguments, cwd=self.folder)

    def command(self):
        return [*self.user, f"{self.programs}/postgres", "-D", f"{self.folder}/data", "-p", str(self.port), "-k", self.folder,
                "-c", "fsync=off", "-c", "synchronous_commit=off"]

    def answers(self):
        if self.run("pg_isready", "-h", self.folder, "-p", str(self.port)).returncode:
            return False
        return self.run("pgbench", "-h", self.folder, "-p", str(self.port), "-i", "-s", "2", "-q", "postgres").returncode == 0

    def load(self, seconds):
        done = self.run("pgbench", "-h", self.folder, "-p", str(self.port), "-c", "4", "-T", str(max(1, round(seconds))), "postgres")
        found = re.search(r"tps = ([0-9.]+)", done.stdout)
        failed = re.search(r"failed transactions: (\d+)", done.stdout)
        if done.returncode or not found or not failed:
            say("  pgbench:", done.returncode, done.stderr[-300:])
            return 0.0, 1
        return float(found[1]), int(failed[1])

    def pids(self):
        return [self.server.pid, *children_of(self.server.pid)]

    def stop(self):
        self.server.send_signal(signal.SIGINT)
        return self.server.wait(60)


SERVICES = {"redis": Redis, "nginx": Nginx, "postgres": Postgres, "node": Node, "python": Python}


class Recording:
    """`heaptap record -P`, in force after attach(), over after detach()."""

    def __init__(self, service, out):
        self.service, self.out, self.log, self.process = service, out, f"{service.folder}/record.log", None

    def said(self, text):
        with open(self.log, encoding="utf-8") as log:
            return log.read().count(text)

    def attach(self):
        pids = self.service.pids()
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([f"{self.service.build}/heaptap", "record", "-o", self.out + "/", "-P",
                                             ",".join(map(str, pids))], env=ENVIRONMENT, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while self.said("attached; one thread") < len(pids) and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.said("attached; one thread"), len(pids)

    def detach(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def lines(self):
        with open(self.log, encoding="utf-8") as log:
            return [line.rstrip() for line in log if "stood still" in line or "cannot" in line or "stay" in line]


def beside(service, act):
    """The load, and `act` in its middle: (its rate and errors, what act returns)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr(service.load(SECONDS)).encode())
        os._exit(0)
    os.close(writer)
    time.sleep(SECONDS / 3)
    result = act()
    with os.fdopen(reader) as pipe:
        rate, errors = re.findall(r"[0-9.]+", pipe.read())
    os.waitpid(child, 0)
    return (float(rate), int(errors)), result


class Nobody:
    """In place of a recording."""

    def attach(self):
        return 0, 0

    def detach(self):
        return 0

    def lines(self):
        return []


def repetition(service, recording):
    """{phase: (rate, errors)}, the lines of the recording, and what was not as it should be."""
    figures, wrong = {}, []
    service.start()
    figures["warm"] = service.load(SECONDS)
    figures["before"] = service.load(SECONDS)
    figures["attach"], (attached, wanted) = beside(service, recording.attach)
    if attached != wanted:
        wrong.append(f"attached to {attached} of {wanted}")
    figures["during"] = service.load(SECONDS)
    figures["detach"], status = beside(service, recording.detach)
    if status:
        wrong.append(f"record ended with {status}")
    figures["after"] = service.load(SECONDS)
    ended = service.stop()
    if ended not in (0, -signal.SIGTERM, -signal.SIGINT):
        wrong.append(f"the server ended with {ended}")
    return figures, recording.lines(), wrong


def spread(values, form="{:.3f}"):
    return f"{form.format(statistics.median(values))} [{form.format(min(values))}..{form.format(max(values))}]"


def show_top(build, out):
    said = output_of(f"{build}/heaptap", "report", "--sort", "alloc", "-n", "5", out)
    say("\n".join("    " + line[:150] for line in (said.stdout or said.stderr).split("\n")[:24]))


def ratios_of(runs):
    return ", ".join(f"{phase} {spread([run[phase][0] / run['before'][0] for run in runs])}"
                     for phase in ("attach", "during", "detach", "after"))


def measure(build, name):
    folder = tempfile.mkdtemp(prefix="heaptap-attach.")
    os.chmod(folder, 0o755)
    runs, alone, lines = [], [], []
    try:
        service = SERVICES[name](build, folder)
        for number in range(REPEATS):
            shutil.rmtree(f"{folder}/p", ignore_errors=True)
            for recording, into in (Recording(service, f"{folder}/p"), runs), (Nobody(), alone):
                figures, said, wrong = repetition(service, recording)
                into.append(figures)
                lines += said
                for text in wrong:
                    say(f"  repetition {number + 1}: {text}")
        say(f"{name}: n {len(runs)}, errors {sum(errors for run in runs for _, errors in run.values())}, answers per second "
            f"before {spread([run['before'][0] for run in runs], '{:.0f}')}; of that {ratios_of(runs)}")
        say(f"  alone: n {len(alone)}, errors {sum(errors for run in alone for _, errors in run.values())}, {ratios_of(alone)}")
        for what in "attached", "detached":
            stood = [float(found[1]) for line in lines if (found := re.search(what + r"; paused one thread for ([0-9.]+) ms", line))]
            if stood:
                say(f"  {what}: {len(stood)} times, paused one thread for {spread(stood, '{:.1f}')} ms")
        for line in lines:
            if "stood still" not in line:
                say("  " + line)
        show_top(build, f"{folder}/p")
    finally:
        if "service" in locals() and service.server and service.server.poll() is None:
            service.server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    build = os.path.abspath(sys.argv[1])
    for name in sys.argv[2:] or SERVICES:
        measure(build, name)


main()
