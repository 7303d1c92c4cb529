/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/runtime.h"

#include "pprof/table/array.h"

#include <stdlib.h>
#include <string.h>

/* ---- how they are known */

/* Only the file that has the interpreter exports these symbols. V8's entry is not exported: it is a local
 * symbol. */
static const struct {
	const char *name;
	enum runtime_kind kind;
	bool local, entry;
} symbols[] = {
    {"_PyEval_EvalFrameDefault", RUNTIME_PYTHON, .entry = true},
    {"PyUnstable_PerfMapState_Init", RUNTIME_PYTHON, .entry = false}, /* since 3.12 */
    {"node_module_register", RUNTIME_NODE, .entry = false},
    {"Builtins_JSEntryTrampoline", RUNTIME_NODE, .local = true, .entry = true},
    {"JNI_CreateJavaVM", RUNTIME_JVM, .entry = false},
    {"_zend_mm_alloc", RUNTIME_PHP, .entry = false},
    {"execute_ex", RUNTIME_PHP, .entry = true},
    {"erts_alloc_init", RUNTIME_ERLANG, .entry = false},
    {"rb_vm_exec", RUNTIME_RUBY, .entry = true},
    {"Perl_runops_standard", RUNTIME_PERL, .entry = true},
    {"lua_pcallk", RUNTIME_LUA, .entry = true}, /* since 5.2 */
    {"TclNRRunCallbacks", RUNTIME_TCL, .entry = true},
};

/* Libraries that contain an interpreter, for programs that do not contain it themselves. */
static const struct {
	const char *name;
	enum runtime_kind kind;
} libraries[] = {
    {"libpython3.", RUNTIME_PYTHON},
    {"libnode.so", RUNTIME_NODE},
    {"libjli.so", RUNTIME_JVM},
    {"libjvm.so", RUNTIME_JVM},
    {"libphp", RUNTIME_PHP},
    {"libruby", RUNTIME_RUBY},
    {"libperl.so", RUNTIME_PERL},
    {"liblua5.3", RUNTIME_LUA},
    {"liblua5.4", RUNTIME_LUA},
    {"libtcl8", RUNTIME_TCL},
    {"libtcl9", RUNTIME_TCL},
};

enum { PYTHON_NAMES_MINOR = 12 };

const char *runtime_symbol(size_t index)
{
	return index < ARRAY_COUNT(symbols) ? symbols[index].name : NULL;
}

void runtime_note_symbol(struct runtime *runtime, const struct runtime_symbol *symbol)
{
	size_t i = 0;

	while (i < ARRAY_COUNT(symbols) && strcmp(symbol->name, symbols[i].name) != 0)
		i++;
	if (i == ARRAY_COUNT(symbols) || (!symbol->exported && !symbols[i].local))
		return;
	if (symbols[i].entry && symbol->bytes <= UINT64_MAX - symbol->start) {
		runtime->entry_start = symbol->start;
		runtime->entry_end = symbol->start + symbol->bytes;
	}
	if (!symbols[i].local)
		runtime->kind = symbols[i].kind;
	if (strcmp(symbol->name, "PyUnstable_PerfMapState_Init") == 0)
		runtime->python_names = true;
}

void runtime_note_library(struct runtime *runtime, const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(libraries); i++) {
		const size_t length = strlen(libraries[i].name);

		if (strncmp(name, libraries[i].name, length) != 0)
			continue;
		runtime->kind = libraries[i].kind;
		if (runtime->kind == RUNTIME_PYTHON)
			runtime->python_names = strtol(name + length, NULL, 10) >= PYTHON_NAMES_MINOR;
	}
}

/* Go's linker writes this section into each program, and strip keeps it. */
void runtime_note_go_section(struct runtime *runtime)
{
	if (!runtime->kind)
		runtime->kind = RUNTIME_GO;
}

/* ---- what to say */

#define BY_MMAP    "--mmap shows who makes it grow, "
#define GO_PROFILE "Go's own heap profile (net/http/pprof)"

static const struct {
	const char *memory, *memory_remedy;
	const char *beside_mmap; /* NULL: NULL if --mmap shows enough */
	bool avoids_malloc;
	const char *off; /* the beginning of the variable that makes it use malloc; NULL: there is none */
	const char *language, *names_remedy;
} words[RUNTIME_KINDS] = {
    [RUNTIME_PYTHON] = {.memory = "python's own pool",
        .memory_remedy = BY_MMAP "PYTHONMALLOC=malloc is exact",
        .off = "PYTHONMALLOC=malloc",
        .language = "Python",
        .names_remedy = "memray shows their lines; heaptap names those of Python 3.12 and later"},
    [RUNTIME_NODE] = {.memory = "V8's heap (JavaScript objects)",
        .memory_remedy = "node --heap-prof shows who makes them, --heapsnapshot-signal=SIGUSR2 what there is",
        .beside_mmap = "node --heap-prof shows who makes them, --heapsnapshot-signal=SIGUSR2 what there is",
        .language = "JavaScript",
        .names_remedy = "node --perf-basic-prof-only-functions --interpreted-frames-native-stack"},
    [RUNTIME_JVM] = {.memory = "the JVM's heap (Java objects)",
        .memory_remedy = "a heap dump shows them: jcmd PID GC.heap_dump FILE (not where -Xrs is set)",
        .language = "Java",
        .names_remedy = "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
                        "-XX:+DumpPerfMapAtExit"},
    [RUNTIME_GO] = {.memory = "Go's own heap",
        .memory_remedy = "--mmap shows that it grows, " GO_PROFILE " which code",
        .beside_mmap = GO_PROFILE " shows which code",
        .avoids_malloc = true},
    [RUNTIME_PHP] = {.memory = "PHP's own pool",
        .memory_remedy = BY_MMAP "USE_ZEND_ALLOC=0 is exact",
        .avoids_malloc = true,
        .off = "USE_ZEND_ALLOC=0",
        .language = "PHP",
        .names_remedy = "PHP's extension memprof shows them"},
    [RUNTIME_ERLANG] = {.memory = "Erlang's own allocators",
        .memory_remedy = BY_MMAP "erl +Mea min is exact",
        .avoids_malloc = true,
        .language = "Erlang",
        .names_remedy = ""},
    [RUNTIME_RUBY] = {.language = "Ruby",
        .names_remedy = "Ruby's own ObjectSpace.trace_object_allocations shows their lines"},
    [RUNTIME_PERL] = {.language = "Perl", .names_remedy = ""},
    [RUNTIME_LUA] = {.language = "Lua", .names_remedy = ""},
    [RUNTIME_TCL] = {.language = "Tcl", .names_remedy = ""},
};

const char *runtime_memory(enum runtime_kind kind)
{
	return words[kind].memory;
}

const char *runtime_memory_remedy(enum runtime_kind kind, bool asks)
{
	if (kind == RUNTIME_JVM && asks)
		return "a heap dump shows them: jcmd PID GC.heap_dump FILE";
	return words[kind].memory_remedy;
}

const char *runtime_memory_remedy_beside_mmap(enum runtime_kind kind, bool asks)
{
	return kind == RUNTIME_JVM ? runtime_memory_remedy(kind, asks) : words[kind].beside_mmap;
}

bool runtime_avoids_malloc(enum runtime_kind kind)
{
	return words[kind].avoids_malloc;
}

bool runtime_memory_is_off(enum runtime_kind kind, const char *environment, size_t bytes)
{
	const char *off = words[kind].off;
	const size_t length = off ? strlen(off) : 0;

	for (size_t at = 0; off && bytes - at >= length;) {
		if (memcmp(environment + at, off, length) == 0)
			return true;
		const char *end = memchr(environment + at, 0, bytes - at);
		if (!end)
			break;
		at = (size_t)(end - environment) + 1;
	}
	return false;
}

const char *runtime_language(enum runtime_kind kind)
{
	return words[kind].language;
}

const char *runtime_names_remedy(const struct runtime *runtime, bool asks)
{
	if (runtime->kind == RUNTIME_PYTHON && runtime->python_names)
		return "start it with PYTHONPERFSUPPORT=1 in its environment";
	if (runtime->kind == RUNTIME_JVM && asks)
		return "jcmd PID Compiler.perfmap (Java 17 and later), and java -XX:+PreserveFramePointer "
		       "for "
		       "callers";
	return words[runtime->kind].names_remedy;
}
