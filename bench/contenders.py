# SPDX-License-Identifier: Apache-2.0
"""What is measured, and what it is measured under."""
import os
import subprocess

from measure import CLEAN, Contender, Workload

TCMALLOC = "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"
# glibc has 8 arenas a CPU, which the 64th thread finds locked: native runs then differ by a factor of two from each other.
ARENAS = {"MALLOC_ARENA_MAX": "1024"}
LESS = 0.02  # of the work, for tools that cost several times what the target does
EXACT = 0.019  # likewise; a group of its own is told by its number


def heaptap(build, backend, period, *options):
    return [f"{build}/heaptap", "record", "-q", "-b", backend, "-p", period, "-o", "{folder}/%e.%p.pb.gz", *options]


def backends():
    """The first one is what `auto` takes at the default period, or auto itself."""
    return ["uprobe" if os.geteuid() == 0 else "auto", "breakpoint", "copy", "walk"]


def contenders(build):
    """[(scale of the work, which workloads, contenders)]: slow tools get less to do, and a native run of just that."""
    def ours(period, often=()):
        return [Contender(f"heaptap {b} {period}", heaptap(build, b, period), once=b not in often) for b in backends()]

    tcmalloc = {"LD_PRELOAD": TCMALLOC}
    return [
        (1.0, "", [
            Contender("native"),
            Contender("forward", environment={"LD_PRELOAD": f"{build}/bench/forward"}),
            # A period that is never reached: what everybody pays who is not sampled.
            Contender("heaptap unsampled", heaptap(build, "copy", "1024G")),
            *ours("512K", often=backends()), *ours("64K"),
            Contender("tcmalloc", environment=tcmalloc, needs=[TCMALLOC], once=True),
            Contender("tcmalloc 512K", environment={**tcmalloc, "TCMALLOC_SAMPLE_PARAMETER": "524288"}, needs=[TCMALLOC],
                      once=True),
        ]),
        # What it costs to keep the heap at its largest, where samples are many.
        (0.2, "^(batch 1|storm|stl|sqlite)", [
            Contender("native"),
            Contender("heaptap copy 64K", heaptap(build, "copy", "64K")),
            Contender("heaptap copy 64K no peak", heaptap(build, "copy", "64K", "--no-peak")),
        ]),
        # Without the loops that say the same as small, but would take four minutes more by the breakpoint.
        (LESS, "^(?!batch [28]|batch 64|pingpong|cross)", [
            Contender("native", once=True), *ours("1"),
        ]),
        # Every allocation, by those that keep its stack: on every workload.
        (EXACT, "", [
            Contender("native"),
            Contender("heaptap auto 1", heaptap(build, "auto", "1")),
            Contender("heaptrack", ["heaptrack", "-o", "{folder}/heaptrack"], needs=["heaptrack"]),
        ]),
        (0.01, "^(batch 1|small|sqlite|stl|python$)", [
            Contender("native", once=True),
            Contender("massif", ["valgrind", "-q", "--tool=massif", "--massif-out-file={folder}/massif"],
                      needs=["valgrind"], inside=True, once=True),
            Contender("dhat", ["valgrind", "-q", "--tool=dhat", "--dhat-out-file={folder}/dhat"],
                      needs=["valgrind"], inside=True, once=True),
        ]),
    ]


def prepare(folder, scale):
    """Inputs of that size."""
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/big.{scale}.i", "w", encoding="ascii") as file:
        file.write("int printf(const char *, ...);\n")
        for i in range(max(1, int(1100 * scale))):
            file.write(f"int f{i}(int a, int b) {{ int s = 0; for (int i = 0; i < a; i++) {{ s += i * b; "
                       f"if (s % {i + 3} == 0) s += printf(\"%d\", s); }} return s; }}\n")
    with open(f"{folder}/work.{scale}.sql", "w", encoding="ascii") as file:
        file.write("create table t(a integer primary key, b text, c integer);\n"
                   "with recursive n(i) as (select 1 union all select i + 1 from n where "
                   f"i < {max(1000, int(1900000 * scale))})\n"
                   "insert into t select i, 'row number ' || (i * 7919 % 100003), i % 1000 from n;\n"
                   "create index x on t(b);\n"
                   "select count(*), sum(length(p.b)) from t p join t q on p.b = q.b and q.c < 200;\n"
                   "select c, group_concat(b) from t group by c limit 1;\n"
                   "select b, count(*) from t group by b order by 2 desc, 1 limit 3;\n")
    python = """
import json, sys
for k in range(int(sys.argv[1])):
    d = {str(i): [i, str(i * k), {"x": i / 7}] for i in range(int(sys.argv[2]))}
    s = json.dumps(d)
    e = json.loads(s)
    assert len(e) == len(d)
"""
    node = """
for (let k = 0; k < Number(process.argv[2]); k++) {
  const d = {};
  for (let i = 0; i < Number(process.argv[3]); i++) d["key" + i] = [i, String(i * k), { x: i / 7 }];
  const e = JSON.parse(JSON.stringify(d));
  if (Object.keys(e).length != Object.keys(d).length) throw 1;
}
"""
    for name, text in (("work.py", python), ("work.js", node)):
        with open(f"{folder}/{name}", "w", encoding="ascii") as file:
            file.write(text)


def cc1():
    return subprocess.run(["gcc", "-print-prog-name=cc1"], env=CLEAN, capture_output=True, text=True,
                          check=True).stdout.strip()


def redis(folder, port, pipeline, requests):
    connect = ["redis-cli", "-p", str(port)]
    return Workload(
        f"redis P{pipeline}", ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", folder],
        server=(connect + ["ping"],
                ["redis-benchmark", "-p", str(port), "-q", "-c", "20", "-n", str(requests), "-P", str(pipeline), "-d", "200",
                 "-r", "100000", "-t", "set,get,lpush,lpop"],
                connect + ["shutdown", "nosave"]), needs=["redis-server", "redis-benchmark"])


def loops(build, kind, threads, pairs):
    return Workload(f"{kind} {threads}", [f"{build}/bench/loops", kind, str(threads), str(int(pairs))],
                    environment=ARENAS if threads > 8 else None)


def workloads(build, folder, scale):
    prepare(folder, scale)

    def times(count):
        """Rounds, and how large each is: less work is fewer rounds first."""
        rounds = max(1, int(count * scale))
        return [str(rounds), str(int(20000 * min(1, count * scale / rounds)))]

    return [
        loops(build, "batch", 1, 36e6 * scale),
        loops(build, "batch", 2, 60e6 * scale),
        loops(build, "batch", 8, 50e6 * scale),
        loops(build, "batch", 64, 45e6 * scale),
        loops(build, "small", 1, 160e6 * scale),
        loops(build, "pingpong", 1, 290e6 * scale),
        loops(build, "cross", 2, 30e6 * scale),
        loops(build, "pipe", 2, 500e3 * scale),
        loops(build, "storm", 1, 280e3 * scale),
        Workload("sqlite", ["sqlite3", ":memory:"], stdin=f"{folder}/work.{scale}.sql", needs=["sqlite3"]),
        Workload("stl", [f"{build}/bench/stl", str(int(3900000 * scale))]),
        Workload("cc1", [cc1(), "-quiet", "-O1", f"{folder}/big.{scale}.i", "-o", "/dev/null"]),
        Workload("python", ["/usr/bin/python3", f"{folder}/work.py", *times(72)]),
        Workload("python malloc", ["/usr/bin/python3", f"{folder}/work.py", *times(50)],
                 environment={"PYTHONMALLOC": "malloc"}),
        Workload("node", ["/usr/bin/node", f"{folder}/work.js", *times(80)], needs=["/usr/bin/node"]),
        redis(folder, 6391, 1, int(110000 * scale) + 1000),
        redis(folder, 6392, 16, int(750000 * scale) + 1000),
    ]


LOOPS = ("batch", "small", "pingpong", "cross")  # nothing but malloc and free
SWITCHES = ("pipe 2", "redis P1")  # nothing but context switches, and many of them
PROGRAMS = ("sqlite", "stl", "cc1", "python", "python malloc", "node", "redis P1", "redis P16")
