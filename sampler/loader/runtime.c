/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/loader/runtime.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- how they are known */

/* Each is exported by the file that has the interpreter, and by no other; but V8's entry is a local one. */
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
};

/* Libraries of an interpreter whose program has it not inside. */
static const struct {
	const char *name;
	enum runtime_kind kind;
} libraries[] = {
    {"libpython3.", RUNTIME_PYTHON},
    {"libnode.so", RUNTIME_NODE},
    {"libjli.so", RUNTIME_JVM},
    {"libjvm.so", RUNTIME_JVM},
};

enum { PYTHON_NAMES_MINOR = 12 };

const char *runtime_symbol(size_t index)
{
	return index < COUNT(symbols) ? symbols[index].name : NULL;
}

void runtime_note_symbol(struct runtime *runtime, const struct runtime_symbol *symbol)
{
	size_t i = 0;
	while (i < COUNT(symbols) && strcmp(symbol->name, symbols[i].name) != 0)
		i++;
	if (i == COUNT(symbols) || (!symbol->exported && !symbols[i].local))
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
	for (size_t i = 0; i < COUNT(libraries); i++) {
		const size_t length = strlen(libraries[i].name);
		if (strncmp(name, libraries[i].name, length) != 0)
			continue;
		runtime->kind = libraries[i].kind;
		if (runtime->kind == RUNTIME_PYTHON)
			runtime->python_names = strtol(name + length, NULL, 10) >= PYTHON_NAMES_MINOR;
	}
}

/* ---- what to say */

static const struct {
	const char *memory, *memory_remedy;
	bool by_mmap;
	const char *language;
} words[RUNTIME_KINDS] = {
    [RUNTIME_PYTHON] = {.memory = "python's own pool",
        .memory_remedy = "--mmap shows who makes it grow, PYTHONMALLOC=malloc is exact",
        .by_mmap = true,
        .language = "Python"},
    [RUNTIME_NODE] = {.memory = "V8's heap (JavaScript objects)",
        .memory_remedy = "node --heap-prof shows who makes them, --heapsnapshot-signal=SIGUSR2 what there is",
        .language = "JavaScript"},
    [RUNTIME_JVM] = {.memory = "the JVM's heap (Java objects)",
        .memory_remedy = "a heap dump shows them: java -XX:+HeapDumpOnOutOfMemoryError",
        .language = "Java"},
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

bool runtime_memory_by_mmap(enum runtime_kind kind)
{
	return words[kind].by_mmap;
}

const char *runtime_language(enum runtime_kind kind)
{
	return words[kind].language;
}

const char *runtime_names_remedy(const struct runtime *runtime, bool asks)
{
	switch (runtime->kind) {
	case RUNTIME_PYTHON:
		return runtime->python_names ? "start it with PYTHONPERFSUPPORT=1 in its environment"
		                             : "Python 3.12 and later name them, with PYTHONPERFSUPPORT=1";
	case RUNTIME_NODE:
		return "node --perf-basic-prof-only-functions --interpreted-frames-native-stack";
	case RUNTIME_JVM:
		return asks
		    ? "jcmd PID Compiler.perfmap (Java 17 and later), and java -XX:+PreserveFramePointer for "
		      "callers"
		    : "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
		      "-XX:+DumpPerfMapAtExit";
	default:
		return "";
	}
}
