# SPDX-License-Identifier: Apache-2.0
# `heaptap record -P`: which calls of which modules are seen, however they are linked and bound; and which are named.

. "$HEAPTAP_TOP/tests/attach.sh"

# In use by a function whose calls are bound late or at the start, by JUMP_SLOT, GLOB_DAT and a word of data, from an
# object at a fixed address or not; and after the detach the program goes on to bind what it had not called yet.
test_bindings() {
  need_root
  cat >bound.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *(*volatile in_data)(size_t) = malloc; /* R_X86_64_64 */
static void *volatile kept[300];
__attribute__((noinline)) static void by_call(int from) { for (int i = 0; i < 100; i++) kept[from + i] = malloc(500); }
__attribute__((noinline)) static void by_word(void) { for (int i = 200; i < 300; i++) kept[i] = in_data(700); }
__attribute__((noinline)) static void by_late(void) { free(realloc(strdup("never called before"), 100)); }
int main(void)
{
	char line;
	if (write(1, "ready\n", 6) != 6) return 1; /* neither stdio nor malloc so far */
	while (read(0, &line, 1) == 1) {
		if (line == 'w') by_call(0), by_word();
		if (line == 'l') by_late(), by_call(100);
		if (line != '\n' && write(1, "done\n", 5) != 5) return 1;
	}
	return 0;
}
C
  for flags in '-Wl,-z,lazy -no-pie -fno-pie' '-Wl,-z,lazy' '-Wl,-z,now,-z,relro' '-Wl,-z,now -fno-plt' '-Wl,-z,norelro -no-pie -fno-pie'; do
    # shellcheck disable=SC2086
    gcc -O1 -fno-builtin -w -o bound bound.c $flags
    rm -rf in p
    running ./bound
    grep 'bound$' "/proc/$target/maps" >maps
    attach -p 1
    echo w >&7
    wait_for 30 said_times done 1
    detach
    grep 'bound$' "/proc/$target/maps" | diff maps - || fail "$flags: its mappings have changed"
    profile=$(only p/heaptap.bound."$target".detach.pb.gz)
    reached_exactly "$profile" by_call 'inuse_objects 100' 'inuse_space 50000'
    reached_exactly "$profile" by_word 'inuse_objects 100' 'inuse_space 70000'
    echo l >&7
    wait_for 30 said_times done 2
    finish
  done
}

# The loader looks at its caller: RUNPATH for a bare name, and RTLD_NEXT.
test_runpath_of_the_caller() {
  need_root
  mkdir plugins
  gcc -O1 -fno-builtin -shared -fPIC -o plugins/libplugin.so -x c - <<<'#include <stdlib.h>
__attribute__((noinline)) void *plugin_alloc(void) { void *volatile block = malloc(900); return block; }'
  cat >caller.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[100];
int main(void)
{
	char line;
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (read(0, &line, 1) == 1) {
		void *plugin = dlopen("libplugin.so", RTLD_NOW);
		void *(*alloc)(void) = plugin ? (void *(*)(void))dlsym(plugin, "plugin_alloc") : NULL;
		if (!alloc || dlsym(RTLD_NEXT, "malloc") == NULL) { puts("not found"); return 3; }
		for (int i = 0; i < 100; i++) kept[i] = alloc();
		puts("done");
	}
	return 0;
}
C
  gcc -O1 -fno-builtin -w -o caller caller.c -ldl -Wl,-rpath,"\$ORIGIN/plugins",--enable-new-dtags
  running ./caller
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  detach
  finish
  reached_exactly "$(only p/heaptap.caller."$target".detach.pb.gz)" plugin_alloc 'inuse_objects 100' 'inuse_space 90000'
}

# Each form of new and delete once, by way of libstdc++'s own slots; an exception goes through.
test_operators() {
  need_root
  cat >cpp.cc <<'C'
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>
static void *volatile kept[400];
struct alignas(64) wide { char bytes[128]; };
__attribute__((noinline)) static void plain() { for (int i = 0; i < 100; i++) kept[i] = ::operator new(300); }
__attribute__((noinline)) static void arrays() { for (int i = 0; i < 100; i++) kept[100 + i] = new (std::nothrow) char[200]; }
__attribute__((noinline)) static void aligned() { for (int i = 0; i < 100; i++) kept[200 + i] = new wide; }
__attribute__((noinline)) static void freed()
{
	for (int i = 0; i < 100; i++) { auto *text = new std::string(600, 'x'); delete text; }
	try { throw std::runtime_error("through"); } catch (const std::exception &) { }
}
int main()
{
	char line;
	setvbuf(stdout, nullptr, _IONBF, 0);
	puts("ready");
	while (read(0, &line, 1) == 1) { plain(); arrays(); aligned(); freed(); puts("done"); }
	return 0;
}
C
  g++ -std=c++17 -O1 -fno-builtin -w -o cpp cpp.cc
  for allocator in '' libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
    rm -rf in p
    running env LD_PRELOAD="$allocator" ./cpp
    attach -p 1
    echo >&7
    wait_for 30 said_times done 1
    detach
    finish
    profile=$(only p/heaptap.cpp."$target".detach.pb.gz)
    reached_exactly "$profile" plain 'alloc_objects 100' 'inuse_objects 100' 'inuse_space 30000'
    reached_exactly "$profile" arrays 'alloc_objects 100' 'inuse_objects 100' 'inuse_space 20000'
    reached_exactly "$profile" aligned 'alloc_objects 100' 'inuse_objects 100' 'inuse_space 12800'
    reached_exactly "$profile" freed 'inuse_objects 0'
  done
}

# Modules that call an allocator of their own by no slot are named: there at the attach, and loaded later.
test_modules_that_are_not_seen() {
  need_root
  for name in early late; do
    gcc -O1 -fno-builtin -w -shared -fPIC -Wl,-Bsymbolic -o lib$name.so -x c - <<'C'
#include <stddef.h>
static char memory[1 << 20]; static size_t used;
void *malloc(size_t bytes) { used += (bytes + 15) & ~15ul; return memory + used - bytes; }
void free(void *block) { }
void *own_alloc(void) { return malloc(100); }
C
  done
  cat >loads.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[10];
__attribute__((noinline)) static void common(void) { for (int i = 0; i < 10; i++) kept[i] = malloc(1000); }
static void use(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void *(*alloc)(void) = library ? (void *(*)(void))dlsym(library, "own_alloc") : NULL;
	if (!alloc || !alloc()) _exit(3);
}
int main(void)
{
	char line;
	setvbuf(stdout, NULL, _IONBF, 0);
	use("./libearly.so");
	puts("ready");
	while (read(0, &line, 1) == 1) { use("./liblate.so"); common(); puts("done"); }
	return 0;
}
C
  gcc -O1 -fno-builtin -w -o loads loads.c -ldl
  running ./loads
  attach -v -p 1
  matches "^heaptap: pid $target: not seen: what is allocated in libearly.so: it calls malloc in a way that attaching cannot reach; " log
  echo >&7
  wait_for 30 said_times done 1
  detach
  finish
  profile=$(only p/heaptap.loads."$target".detach.pb.gz)
  reached_exactly "$profile" common 'inuse_objects 10' 'inuse_space 10000'
  reached_exactly "$profile" own_alloc 'alloc_objects 0'
  comment_of "$profile" >comments
  matches '^not seen: what is allocated in libearly.so, liblate.so: it calls malloc in a way ' comments
}

# A library that was loaded to be bound late, unloaded, and loaded again to be bound at once, at the same address: its slot
# must not get back the stub that it had the first time, which leads nowhere now.
test_bound_otherwise_the_second_time() {
  need_root
  gcc -O1 -fno-builtin -shared -fPIC -Wl,-z,lazy -o libplug.so -x c - <<<'#include <stdlib.h>
__attribute__((noinline)) void *plug_alloc(void) { void *volatile block = malloc(800); return block; }'
  cat >again.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static void *(*alloc)(void);
static void *load(int mode)
{
	void *library = dlopen("./libplug.so", mode);
	alloc = library ? (void *(*)(void))dlsym(library, "plug_alloc") : NULL;
	if (!alloc) _exit(3);
	return library;
}
int main(void)
{
	char line;
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	for (int turn = 0; read(0, &line, 1) == 1; turn++) {
		if (turn == 0) {
			dlclose(load(RTLD_LAZY));
			void *(*before)(void) = alloc;
			load(RTLD_NOW);
			if (alloc != before) puts("elsewhere");
		}
		if (!alloc()) return 4;
		puts("done");
	}
	return 0;
}
C
  gcc -O1 -fno-builtin -w -o again again.c -ldl
  running ./again
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  ! says elsewhere || fail "this system's loader does not use an address again"
  detach
  echo >&7
  wait_for 30 said_times done 2
  finish
  reached_exactly "$(only p/heaptap.again."$target".detach.pb.gz)" plug_alloc 'inuse_objects 1' 'inuse_space 800'
}

# dlsym looks for new objects. A child that is forked meanwhile finds the loader's locks free, as natively.
test_dlsym_beside_a_fork() {
  need_root
  running "$targets/dlclose_beside" look 300
  attach
  echo >&7
  wait_for 100 says '^[0-9]'
  equal 0 "$(tail -1 said)" 'children that hang'
  wait "$sampler" || fail "record ended with $?: $(cat log)"
}
