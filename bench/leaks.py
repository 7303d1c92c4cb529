#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leaks.py BUILD [PATTERN [JOBS_AT_ONCE]]: what heaptap answers to leaking services, and when (make leaks).

Each file of bench/leaks begins with its jobs: how they are built and started, what load they get, and what `heaptap report`
is to say. The leak begins when the program prints "leak begins", or with its load. Every job is recorded with record's own
interval, and `report` is asked after each new snapshot, as somebody would who looks again and again. Then the record is
ended, and `report`, `diff` and the page's growth are asked of the same files.

    expect: grows REGEX     this function grows            expect: rose REGEX     it rose, and stays
            nothing .       nothing grows                          unseen REGEX   these words tell what is not seen

LEAKS_SECONDS=240: how long at most. LEAKS_OPTIONS: for record, such as -i 5s. LEAKS_PROGRAMS: where programs are built.
"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "leaks")
SECONDS = float(os.environ.get("LEAKS_SECONDS", 240))
POLL_S = 1
UNKNOWN = re.compile(r"nothing|not known|snapshots? at least|no function", re.I)
RAISED = re.compile(r"\b(grows?|growing|since \d)", re.I)


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def read_jobs():
    jobs = {}
    for path in sorted(glob.glob(f"{HERE}/**/*", recursive=True)):
        if not os.path.isfile(path) or path.endswith((".lock", ".toml")):
            continue
        job = None
        for line in open(path, encoding="utf-8").read().split("\n"):
            found = re.match(r"\W*(job|build|record|env|start|attach|load|after|expect): (.*)", line)
            if not found:
                continue
            word, text = found.groups()
            if word == "job":
                job = jobs[text] = {"name": text, "build": []}
            elif job is not None:
                job["build" if word == "build" else word] = job["build"] + [text] if word == "build" else text
    return jobs


def paragraphs(text):
    """A heading with what is indented or listed below it."""
    return re.split(r"\n\s*\n", text)


def is_right(text, expectation):
    kind, regex = expectation.split(" ", 1)
    for paragraph in paragraphs(text):
        heading = paragraph.split("\n", 1)[0]
        for line in paragraph.split("\n"):
            listed = line is not heading and re.match(r"(Grow|Ros|Rise)", heading, re.I)
            rose = re.search(r"\brose\b", line if not listed else heading + line, re.I)
            grows = (RAISED.search(line) and not re.match(r"Most ", heading)) or listed
            if kind == "unseen" and re.search(regex, line):
                return True
            if kind == "nothing" and re.search(r"Growing.*\n +nothing|nothing (\w+ )?grows", paragraph, re.I):
                return True
            if kind == "rose" and rose and re.search(regex, line) and not UNKNOWN.search(line):
                return True
            if kind == "grows" and grows and not rose and re.search(regex, line) and not UNKNOWN.search(line):
                return True
    return False


class Job:
    def __init__(self, job, heaptap, programs, results):
        self.job, self.heaptap, self.port = job, heaptap, free_port()
        self.folder = f"{results}/{job['name']}"
        self.variables = dict(OUT=programs, HERE=HERE, PORT=str(self.port))
        self.children = []

    def text(self, template):
        return re.sub(r"\$([A-Z]+)", lambda found: self.variables.get(found[1], found[0]), template)

    def ask(self, *words):
        done = subprocess.run([self.heaptap, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout

    def spawn(self, command, log, env):
        child = subprocess.Popen(command, stdout=open(f"{self.folder}/{log}", "w", encoding="utf-8"),
                                 stderr=subprocess.STDOUT, env=env, start_new_session=True, shell=isinstance(command, str),
                                 cwd=self.folder)
        self.children.append(child)
        return child

    def profiles(self):
        return sorted(glob.glob(f"{self.folder}/f/*.pb.gz"))

    def wait_begin(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if "load" in self.job:
                with socket.socket() as client:
                    if not client.connect_ex(("127.0.0.1", self.port)):
                        return
            elif "leak begins" in open(f"{self.folder}/program", encoding="utf-8", errors="replace").read():
                return
            time.sleep(0.1)
        raise TimeoutError(f"{self.job['name']} does not begin: see {self.folder}/program")

    def start(self):
        env = dict(os.environ)
        for pair in self.text(self.job.get("env", "")).split():
            env.update([pair.split("=", 1)])
        record = [self.heaptap, "record", *os.environ.get("LEAKS_OPTIONS", "").split(), *self.job.get("record", "").split(),
                  "-o", f"{self.folder}/f/"]
        if "attach" in self.job:
            program = self.spawn(["/bin/sh", "-c", "exec " + self.text(self.job["attach"])], "program", env)
            self.wait_begin()
            front = self.spawn([*record, "-P", str(program.pid)], "record", os.environ)
            time.sleep(2)
        else:
            front = self.spawn([*record, *self.text(self.job["start"]).split()], "program", env)
            self.wait_begin()
        begin = time.monotonic()
        if "load" in self.job:
            self.spawn(self.text(self.job["load"]), "load", os.environ)
            begin += float((re.match(r"sleep (\d+)", self.job["load"]) or [0, 0])[1])
        return front, begin

    def target(self):
        found = re.findall(r"pid (\d+)", open(f"{self.folder}/program", encoding="utf-8", errors="replace").read())
        return found[0] if found else "0"

    def poll(self, front, begin):
        seen, after, right_s = 0, self.job.get("after"), None
        while time.monotonic() - begin < SECONDS and front.poll() is None:
            time.sleep(POLL_S)
            if after and time.monotonic() - begin > 8:
                self.variables["PID"] = self.target()
                subprocess.run(self.text(after), shell=True, check=False, stdout=subprocess.DEVNULL)
                after = None
            if len(self.profiles()) == seen:
                continue
            seen = len(self.profiles())
            if is_right(self.ask("report", f"{self.folder}/f"), self.job["expect"]) and right_s is None:
                right_s = time.monotonic() - begin
                if self.job["expect"].startswith("nothing"):
                    right_s = None  # look on: is it never wrong?
                elif "exit" not in self.job["name"]:
                    break
        return right_s

    def end(self, front):
        if front.poll() is None:
            front.send_signal(signal.SIGINT)
        try:
            front.wait(20)
        except subprocess.TimeoutExpired:
            pass
        for child in self.children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGTERM)
                try:
                    child.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()

    def page(self):
        """The first row of the page's growth."""
        port = free_port()
        server = self.spawn([self.heaptap, "serve", "--listen", f"127.0.0.1:{port}", f"{self.folder}/f"], "serve", os.environ)
        base = f"http://127.0.0.1:{port}/api/v1"
        try:
            processes = []
            for _ in range(100):
                try:
                    processes = json.load(urllib.request.urlopen(f"{base}/processes", timeout=10))["processes"]
                    if processes:
                        break
                except OSError:
                    pass
                time.sleep(0.1)
            if not processes:
                return "no process"
            services = {process["service"] for process in processes}
            of = f"id={processes[0]['id']}"
            if len(processes) > 1:
                most = max(services, key=lambda service: sum(process["service"] == service for process in processes))
                of = f"service={most}"
            with urllib.request.urlopen(f"{base}/growth?{of}", timeout=20) as answer:
                growth = json.load(answer)
            with open(f"{self.folder}/growth.json", "w", encoding="utf-8") as file:
                json.dump(growth, file, indent=1)
            rows = growth.get("rows", [])
            return "; ".join(f"{row.get('kind', 'grows')} {row.get('name', '?')}" for row in rows[:3]) or "nothing"
        except (OSError, KeyError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()

    def diff(self):
        """Of each process its first snapshot and its last."""
        numbered = {}
        for path in self.profiles():
            found = re.match(r"(.*)\.(\d{4})\.pb\.gz$", path)
            if found:
                numbered.setdefault(found[1], []).append(path)
        for place in "base", "new":
            shutil.rmtree(f"{self.folder}/{place}", ignore_errors=True)
            os.makedirs(f"{self.folder}/{place}")
        for paths in numbered.values():
            if len(paths) > 1:
                os.link(paths[0], f"{self.folder}/base/{os.path.basename(paths[0])}")
            os.link(paths[-1], f"{self.folder}/new/{os.path.basename(paths[-1])}")
        text = self.ask("diff", "-n", "5", f"{self.folder}/base", f"{self.folder}/new")
        rows = re.findall(r"^ *(\+\S+ \S+) +(\S+).*[*] +(.*)$", text, re.M)
        return "; ".join(f"{name.split(' < ')[0]} {bytes_} {error}" for bytes_, error, name in rows[:3]
                         if name != "(total)") or "nothing more than chance"

    def run(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(f"{self.folder}/f")
        front, right_s, error = None, None, ""
        try:
            front, begin = self.start()
            right_s = self.poll(front, begin)
            last = self.ask("report", f"{self.folder}/f")
        except (OSError, ValueError) as failed:
            error, last = str(failed), ""
        if front:
            self.end(front)
        report = self.ask("report", f"{self.folder}/f")
        with open(f"{self.folder}/report", "w", encoding="utf-8") as file:
            file.write(last + "\n==== after the end\n" + report)
        return {"job": self.job["name"], "expect": self.job["expect"], "seconds": right_s, "error": error,
                "lines": last.split("\n")[:3], "running": is_right(last, self.job["expect"]),
                "ended": is_right(report, self.job["expect"]), "lines_ended": report.split("\n")[:3],
                "page": self.page(), "diff": self.diff(), "profiles": len(self.profiles())}


def show(result):
    seconds = f"{result['seconds']:.0f} s" if result["seconds"] is not None else "never"
    if result["expect"].startswith("nothing"):
        seconds = "right" if result["running"] else "wrong"
    print(f"{result['job']}: {seconds}; after the end {'right' if result['ended'] else 'not'}; page: {result['page']}; "
          f"diff: {result['diff']}{'; ' + result['error'] if result['error'] else ''}")
    for line in result["lines"]:
        print(f"    {line}")
    sys.stdout.flush()


def main():
    build = os.path.abspath(sys.argv[1])
    pattern = sys.argv[2] if len(sys.argv) > 2 else ""
    at_once = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    programs = os.environ.get("LEAKS_PROGRAMS", f"{build}/leaks/programs")
    results = f"{build}/leaks/results"
    os.makedirs(programs, exist_ok=True)
    os.makedirs(results, exist_ok=True)
    every, jobs = list(read_jobs().values()), []
    for job in every:
        one = Job(job, f"{build}/heaptap", programs, results)
        wanted = re.search(pattern, job["name"])
        # A job may use what an earlier one of the same file has built.
        for command in job["build"]:
            if subprocess.run(one.text(command), shell=True, check=False, stdout=subprocess.DEVNULL).returncode and wanted:
                print(f"{job['name']}: could not be built: {one.text(command)}")
                wanted = None
        if wanted:
            jobs.append(one)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        done = []
        for result in pool.map(Job.run, jobs):
            show(result)
            done.append(result)
    with open(f"{results}/results.json", "w", encoding="utf-8") as file:
        json.dump(done, file, indent=1)


if __name__ == "__main__":
    main()
