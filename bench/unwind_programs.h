/* SPDX-License-Identifier: Apache-2.0 */
/* The programs whose stacks bench/unwind.c takes, and how those are made that Debian does not have ready. */
#ifndef BENCH_UNWIND_PROGRAMS_H
#define BENCH_UNWIND_PROGRAMS_H

#include <stdint.h>

/* From the top of the tree, where this is run. */
#define WORK "build/bench-unwind"

/* Programs and inputs that Debian does not have ready. */
static const char prepare[] =
    "set -e; mkdir -p " WORK "; cd " WORK "; test -e ready.2 && exit 0\n"
    "cat > cxx.cc <<'END'\n"
    "#include <map>\n#include <string>\n#include <vector>\n#include <stdexcept>\n"
    "static int deep(int n) {\n"
    "  std::map<std::string, std::vector<int>> m;\n"
    "  for (int i = 0; i <= n % 7; i++) m[std::to_string(i * 7919) + \"xxxxxxxxxxxxxxxxxxxxxxx\"].resize(i * "
    "10 + 1);\n"
    "  if (n <= 0) throw std::runtime_error(\"x\");\n"
    "  return deep(n - 1) + m.size();\n"
    "}\n"
    "int main(int argc, char **argv) {\n"
    "  int most = argc > 1 ? std::stoi(argv[1]) : 12;\n"
    "  long s = 0;\n"
    "  for (int i = 0; i < 400000; i++) try { s += deep(i % most); } catch (std::exception &e) { s += "
    "e.what()[0]; }\n"
    "  return s == 1;\n"
    "}\n"
    "END\n"
    "g++ -O2 -g -o cxx cxx.cc\n"
    "g++ -O2 -E -include map -include regex -include iostream cxx.cc -o big.ii\n"
    "clang++ -std=gnu++17 -E -include map -include regex -include iostream cxx.cc -o clang.ii\n"
    "{ echo 'int printf(const char *, ...);'; i=0; while [ $i -lt 3000 ]; do i=$((i+1));\n"
    "echo \"int f$i(int a,int b){int s=0;for(int "
    "i=0;i<a;i++){s+=i*b;if(s%$((i+3))==0)s+=printf(\\\"%d\\\",s);}return s;}\"\n"
    "done; } > big.i\n"
    "touch ready.2\n";

#if defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "x86_64-linux-gnu"
#endif
static const char libc_path[] = "/lib/" TRIPLET "/libc.so.6";

struct program {
	const char *name, *file, *function;
	uint64_t period;
	const char *argv[20];
	const char *load[8]; /* run beside it to give it work */
};

static const char python_work[] =
    "import json,ast,random\n"
    "def f(n):\n  return [f(n-1)] if n else json.loads(json.dumps({str(i):[i]*9 for i in range(300)}))\n"
    "for i in range(60000):\n  f(25); ast.parse('a+b*(c-d)\\n'*50)\n";
static const char node_work[] =
    "let a=[];for(let "
    "i=0;i<4e5;i++){a.push(JSON.parse('{\"x\":['+i+',2,3],\"y\":\"'+i+'\"}'));if(a.length>1e4)a=[];"
    "Buffer.alloc(9000);require('zlib').deflateSync('x'.repeat(i%5000))}";

static const struct program programs[] = {
    {"cxx", libc_path, "malloc", 31, {WORK "/cxx", NULL}, {NULL}},
    {"deep50", libc_path, "malloc", 311, {WORK "/cxx", "130", NULL}, {NULL}},
    {"deep120", libc_path, "malloc", 1311, {WORK "/cxx", "340", NULL}, {NULL}},
    {"redis", "/lib/" TRIPLET "/libjemalloc.so.2", "malloc", 5,
        {"redis-server", "--port", "17379", "--save", "", NULL},
        {"sh", "-c", "while :; do redis-benchmark -p 17379 -q -n 100000 -r 10000 -t set,lpush,hset; done",
            NULL}},
    {"cc1", libc_path, "malloc", 101,
        {"/usr/lib/gcc/" TRIPLET "/12/cc1", "-O2", "-quiet", WORK "/big.i", "-o", "/dev/null", NULL}, {NULL}},
    {"cc1plus", libc_path, "malloc", 61,
        {"/usr/lib/gcc/" TRIPLET "/12/cc1plus", "-O2", "-quiet", WORK "/big.ii", "-o", "/dev/null", NULL},
        {NULL}},
    {"git", libc_path, "malloc", 23, {"git", "log", "-p", "--stat", NULL}, {NULL}},
    {"gdb", libc_path, "malloc", 31, {"gdb", "-batch", "-ex", "info functions", "/usr/bin/gdb", NULL},
        {NULL}},
    {"node", libc_path, "malloc", 71, {"node", "-e", node_work, NULL}, {NULL}},
    {"clang", libc_path, "malloc", 251,
        {"/usr/lib/llvm-14/bin/clang", "-cc1", "-x", "c++-cpp-output", "-std=gnu++17", "-O2",
            "-fcxx-exceptions", "-fexceptions", "-S", "-o", "/dev/null", WORK "/clang.ii", NULL},
        {NULL}},
    {"python", libc_path, "malloc", 97, {"/usr/bin/python3", "-c", python_work, NULL}, {NULL}},
    {"go", libc_path, "malloc", 1, {"/usr/bin/go", "version", NULL}, {NULL}},
    {"sqlite", libc_path, "malloc", 97,
        {"sqlite3", ":memory:",
            "with recursive c(x) as (select 1 union all select x+1 from c where x<300000) "
            "select count(distinct hex(x)) from c order by 1",
            NULL},
        {NULL}},
};

#endif
