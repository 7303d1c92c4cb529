/* SPDX-License-Identifier: Apache-2.0 */
/* own_code: four functions of a program that allocate through the standard library and through a wrapper of
 * malloc, load_users most of all. */
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

struct User {
	std::string name;
	std::vector<int> marks;
};

static std::map<int, User> users;
static std::unordered_map<int, User> hashed;
static std::vector<std::string> lines;
static void *rows[30000];

extern "C" __attribute__((noinline)) void *xmalloc(size_t bytes)
{
	void *block = malloc(bytes);

	if (!block)
		abort();
	return memset(block, 1, bytes);
}

__attribute__((noinline)) static void load_users(int count)
{
	for (int i = 0; i < count; i++) {
		users[i].name = std::string(100, 'a');
		users[i].marks.resize(50);
	}
}

__attribute__((noinline)) static void index_users(int count)
{
	for (int i = 0; i < count; i++)
		hashed[i].name = std::string(60, 'b');
}

__attribute__((noinline)) static void read_lines(int count)
{
	for (int i = 0; i < count; i++)
		lines.push_back(std::string(40, 'c'));
}

__attribute__((noinline)) static void copy_rows(int count)
{
	for (int i = 0; i < count; i++)
		rows[i] = xmalloc(64);
}

int main()
{
	load_users(20000);
	index_users(20000);
	read_lines(20000);
	copy_rows(30000);
	_exit(0); /* with everything in use */
}
