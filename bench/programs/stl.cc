/* SPDX-License-Identifier: Apache-2.0 */
/* stl STEPS: a map of strings to vectors that grows, is searched, and shrinks. */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

int main(int argc, char *argv[])
{
	unsigned long steps = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1, random = 1, sum = 0;
	std::map<std::string, std::vector<unsigned long>> map;
	for (unsigned long i = 0; i < steps; i++) {
		random = random * 6364136223846793005ul + 1442695040888963407ul;
		unsigned long key = (random >> 33) % 50000;
		std::string name = "the key that has the number " + std::to_string(key);
		if (key % 3 == 0)
			map.erase(name);
		else
			map[name].push_back(i);
		auto found = map.find("the key that has the number " + std::to_string(key / 2));
		if (found != map.end())
			sum += found->second.size();
		if (map.size() > 30000)
			map.clear();
	}
	std::printf("%lu\n", sum);
}
