#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documents.py run PAGE | links FOLDER: the commands and links of the documents.

run PAGE types the commands of a page into one bash, in the current folder, and compares what they print. Each block of
commands (```console) has a line in front:

    <!-- run: SHELL -->      run it, after SHELL, which prepares what the reader has (a server, a folder of profiles)
    <!-- shown: WHY -->      not run

In a block, a line that begins with "$ " is a command; a comment may follow it ("  # ..."). The lines below the command are some
of those that the command prints, in their order. Numbers, times and units may differ. A line "..." stands for any lines, and a
line that ends with "..." for any rest. "^C" is typed once the lines before it have come and the file interrupt.now is there.
"sudo " is left out. The word PID in a command is the variable PID.

links FOLDER checks each link of README.md, SECURITY.md, CONTRIBUTING.md and docs: the file is there, and so is the heading.
"""
import os
import re
import signal
import subprocess
import sys
import time

FACTOR = float(os.environ.get("TEST_TIME_FACTOR", "5"))
MARK = re.compile(r"<!-- (run|shown): ?(.*?) ?-->")


def fail(message):
    print(f"documents: {message}", file=sys.stderr)
    sys.exit(1)


def blocks(page):
    """Yields (line number, kind, words, lines) of each block of commands."""
    mark, block, start = None, None, 0
    with open(page, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if block is not None:
                if line.startswith("```"):
                    yield start, mark[0], mark[1], block
                    mark, block = None, None
                else:
                    block.append(line)
            elif line.startswith("```console"):
                if not mark:
                    fail(f"{page}:{number}: the block has no line <!-- run: --> or <!-- shown: WHY -->")
                if mark[0] == "shown" and not mark[1]:
                    fail(f"{page}:{number}: shown without a reason")
                block, start = [], number
            elif line.startswith("```") and line != "```":
                block, mark = [], ("text", "")
            elif MARK.fullmatch(line):
                mark = MARK.fullmatch(line).groups()


def shape(line):
    """What of a line is compared: its words, with numbers, units and times taken for equal."""
    line = re.sub(r"\d{4}-\d\d-\d\d|\d+(:\d\d)+|\d+(\.\d+)?", "N", line)
    line = re.sub(r"N (B|[KMGT]iB)\b", "N B", line)
    line = re.sub(r"N[BKMGT]\b", "N B", line)
    line = re.sub(r"\ba (second|minute|hour|day)\b", "a TIME", line)
    line = re.sub(r"\b(nearly all|all|N %) of it\b", "PART of it", line)
    line = re.sub(r"\+-N ?%\??", "+-N%", line)
    return re.sub(r"\s+", " ", line).strip()


class Shell:
    """A bash that gets one command after the other; its output is in a file."""

    def __init__(self, prelude):
        self.path = os.path.abspath("page.out")
        self.output = open(self.path, "wb")
        self.bash = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=self.output, stderr=self.output,
                                     start_new_session=True)
        self.number = 0
        self.type(prelude)

    def read(self, since=0):
        with open(self.path, "rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")

    def position(self):
        return os.path.getsize(self.path)

    def type(self, text):
        self.bash.stdin.write(text.encode() + b"\n")
        self.bash.stdin.flush()

    def end(self):
        """Ends all that the page has started: a job in the background has a process group of its own."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getsid(int(pid)) == self.bash.pid:
                    os.kill(int(pid), signal.SIGTERM)
            except OSError:
                pass  # it has ended, or is another user's
        self.bash.wait()

    def run(self, command):
        """Types the command; returns where its output begins, and the mark that ends it."""
        self.number += 1
        since, mark = self.position(), f"done-{self.number}-of-page"
        self.type(f"{command}\nprintf '%s %s\\n' $? {mark}")
        return since, mark


def missing(wanted, text):
    """The first wanted line that the text lacks behind the wanted lines before it. None if there is no such line."""
    lines = [shape(line) for line in text.splitlines()]
    at = 0
    for line in wanted:
        if line.strip() == "...":
            continue
        want = shape(line)
        while at < len(lines) and lines[at] != want and not (want.endswith("...") and lines[at].startswith(want[:-3].strip())):
            at += 1
        if at == len(lines):
            return line
        at += 1
    return None


def wait(what, check, shell, since, seconds=60):
    deadline = time.monotonic() + seconds * FACTOR
    while not check():
        if time.monotonic() > deadline or shell.bash.poll() is not None:
            fail(f"{what}: waited in vain; printed:\n{shell.read(since)}")
        time.sleep(0.05)


def groups(lines):
    """Splits a block into (command, lines that it prints, whether ^C follows)."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append([re.sub(r"\s+# .*", "", line[2:]), [], None])
        elif not found:
            fail(f"output in front of the first command: {line}")
        elif line == "^C":
            found[-1][2] = len(found[-1][1])
        else:
            found[-1][1].append(line)
    return found


def run_block(shell, where, words, lines):
    if words:
        since, mark = shell.run(words)
        wait(f"{where}: {words}", lambda: mark in shell.read(since), shell, since)
    for command, wanted, interrupt in groups(lines):
        what = f"{where}: {command}"
        command = re.sub(r"\bsudo ", "", command)
        command = re.sub(r"(?<![$\w])PID\b", '"$PID"', command)
        if interrupt is not None:
            command = f"interruptible {command}"
        since, mark = shell.run(command)
        if interrupt is not None:
            first = wanted[:interrupt]
            wait(f"{what}: {first}", lambda: missing(first, shell.read(since)) is None
                 and os.path.exists("interrupt.pid") and os.path.exists("interrupt.now"), shell, since)
            with open("interrupt.pid", encoding="ascii") as file:
                os.killpg(int(file.read()), signal.SIGINT)
        wait(what, lambda: mark in shell.read(since), shell, since)
        if command.endswith("&"):
            wait(f"{what}: {wanted}", lambda: missing(wanted, shell.read(since)) is None, shell, since)
        text = shell.read(since)
        line = missing(wanted, text)
        if line is not None:
            fail(f"{what}\nwanted: {line}\nprinted:\n{text}")
        status = re.search(r"(\d+) " + mark, text).group(1)
        if status != "0" and interrupt is None:
            fail(f"{what}: exit status {status}\n{text}")
        print(f"ran {command}")


def run(page):
    shell = Shell(os.environ["DOCUMENTS_PRELUDE"])
    count = 0
    try:
        for number, kind, words, lines in blocks(page):
            if kind == "run":
                run_block(shell, f"{os.path.basename(page)}:{number}", words, lines)
                count += len(groups(lines))
    finally:
        shell.end()
    print(f"{os.path.basename(page)}: {count} commands")


def anchors(path):
    found, fenced = set(), False
    with open(path, encoding="utf-8") as file:
        for line in file:
            fenced ^= line.startswith("```")
            if line.startswith("#") and not fenced:
                title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
                found.add(title.replace(" ", "-"))
    return found


def links(folder):
    pages = ["README.md", "SECURITY.md", "CONTRIBUTING.md"]
    for root, _, names in os.walk(os.path.join(folder, "docs")):
        pages += [os.path.relpath(os.path.join(root, name), folder) for name in names if name.endswith(".md")]
    count = 0
    for page in pages:
        with open(os.path.join(folder, page), encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```", "", file.read(), flags=re.S | re.M)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(folder, os.path.dirname(page), path)) if path else os.path.join(folder, page)
            if not os.path.exists(file):
                fail(f"{page}: no such file: {target}")
            if anchor and anchor not in anchors(file):
                fail(f"{page}: no such heading: {target}")
    print(f"{count} links of {len(pages)} pages")


def main():
    if sys.argv[1] == "run":
        run(sys.argv[2])
    elif sys.argv[1] == "links":
        links(sys.argv[2])


main()
