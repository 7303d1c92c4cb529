# SPDX-License-Identifier: Apache-2.0
# heaptap symbolize: names for profiles that were recorded without.
# timeout: 240

raw_profile() {
  cp "$targets/own_code" ./own
  record_whole raw.pb.gz -p 4K --symbols raw ./own
}

test_names_are_looked_up_later() {
  raw_profile
  "$heaptap" report raw.pb.gz >out
  matches '^  no function names in this profile: heaptap symbolize raw\.pb\.gz$' out
  ! grep -q load_users out || fail 'names in a raw profile'
  "$heaptap" symbolize raw.pb.gz 2>err
  matches '^heaptap: raw\.pb\.gz\.symbolized: [0-9]+ of [0-9]+ addresses have names now$' err
  equal 600 "$(stat -c %a raw.pb.gz.symbolized)" mode
  profile_check raw.pb.gz.symbolized
  "$heaptap" report --sort alloc raw.pb.gz.symbolized >out
  matches '  load_users > std::vector::resize .*  < main' out
  ! grep -q 'heaptap symbolize' out || fail 'symbolized twice'
  equal "$("$heaptap" report raw.pb.gz | grep -E '^  (in use|allocated)')" \
    "$("$heaptap" report raw.pb.gz.symbolized | grep -E '^  (in use|allocated)')" 'sums'
  "$heaptap" report --lines --sort alloc raw.pb.gz.symbolized >out
  matches '  load_users +own_code\.cc:[0-9]+' out
  go tool pprof -top -sample_index=alloc_space raw.pb.gz.symbolized >top 2>/dev/null
  matches ' load_users$' top
  # Again, elsewhere; and what has names already.
  "$heaptap" symbolize -o again.pb.gz raw.pb.gz 2>err
  cmp again.pb.gz raw.pb.gz.symbolized
  "$heaptap" symbolize -o third.pb.gz again.pb.gz 2>err
  matches 'again\.pb\.gz: nothing to look up' err
  [ ! -e third.pb.gz ] || fail 'a file of nothing new'
}

# Another program under the same name is not asked.
test_another_build_is_refused() {
  raw_profile
  cp "$targets/leaky" ./new && mv ./new ./own
  "$heaptap" symbolize raw.pb.gz 2>err
  matches '/own: another build is there than the one that was recorded; its code stays without names$' err
  profile_check raw.pb.gz.symbolized
  "$heaptap" report -n all raw.pb.gz.symbolized >out
  ! grep -qE 'load_users|remember_request' out || fail 'names of another program'
  rm own
  "$heaptap" symbolize raw.pb.gz 2>err
  matches '/own: No such file or directory; its code stays without names$' err
  # Neither is a fifo opened, nor a file that is cut short believed.
  mkfifo own
  timeout "$(seconds 20)" "$heaptap" symbolize raw.pb.gz 2>err
  matches '/own: ' err
  rm own
  head -c 5000 "$targets/own_code" >own
  "$heaptap" symbolize raw.pb.gz 2>err || fail "status $?"
  profile_check raw.pb.gz.symbolized
}

# The name beside the profile is not the user's, and whose folder it is may have made it a link to a device.
test_no_device_by_a_link() {
  raw_profile
  ln -s /dev/null raw.pb.gz.symbolized
  equal 1 "$(status_of "$heaptap" symbolize raw.pb.gz)"
  matches '^heaptap: cannot write raw\.pb\.gz\.symbolized: Invalid argument$' err
  equal 1 "$(status_of "$heaptap" symbolize .)"
  equal /dev/null "$(readlink raw.pb.gz.symbolized)" 'the link'
  equal 0 "$(status_of "$heaptap" symbolize -o raw.pb.gz.symbolized raw.pb.gz)" # a name that the user wrote
  rm raw.pb.gz.symbolized
  echo other >other && ln -s other raw.pb.gz.symbolized
  equal 0 "$(status_of "$heaptap" symbolize raw.pb.gz)"
  [ ! -L raw.pb.gz.symbolized ] || fail 'the link to a file is still there'
  equal other "$(cat other)"
}

test_wrong_use() {
  raw_profile
  equal 2 "$(status_of "$heaptap" symbolize)"
  equal 2 "$(status_of "$heaptap" symbolize -o x raw.pb.gz raw-peak.pb.gz)"
  matches '^heaptap: -o is for one PROFILE' err
  equal 1 "$(status_of "$heaptap" symbolize nothing.pb.gz raw.pb.gz)"
  matches 'cannot read nothing\.pb\.gz' err
  [ -e raw.pb.gz.symbolized ] || fail 'the good one was not looked at'
  head -c 300 raw.pb.gz >cut.pb.gz
  equal 1 "$(status_of "$heaptap" symbolize cut.pb.gz)"
  mkdir closed.pb.gz.symbolized && cp raw.pb.gz closed.pb.gz
  equal 1 "$(status_of "$heaptap" symbolize closed.pb.gz)"
  matches '^heaptap: cannot write closed\.pb\.gz\.symbolized' err
}

test_folders() {
  raw_profile
  mkdir dir empty
  cp raw.pb.gz dir/a.pb.gz
  cp raw-peak.pb.gz dir/b.pb.gz
  "$heaptap" symbolize dir 2>err
  equal 'a.pb.gz a.pb.gz.symbolized b.pb.gz b.pb.gz.symbolized' "$(ls dir | xargs)"
  cp dir/a.pb.gz.symbolized before
  "$heaptap" symbolize dir dir/a.pb.gz.symbolized 2>err # again: neither is it made of itself
  equal 'a.pb.gz a.pb.gz.symbolized b.pb.gz b.pb.gz.symbolized' "$(ls dir | xargs)"
  cmp before dir/a.pb.gz.symbolized
  equal 2 "$(status_of "$heaptap" symbolize -o x dir)"
  equal 1 "$(status_of "$heaptap" symbolize empty)"
  matches '^heaptap: no profile in empty \(\*\.pb\.gz, \*\.pb\)$' err
  # Standard input has no name to put an ending to.
  equal 2 "$(status_of "$heaptap" symbolize - <raw.pb.gz)"
  equal 'heaptap: standard input has no name: -o FILE says where to write' "$(cat err)"
  "$heaptap" symbolize -o named.pb.gz - <raw.pb.gz 2>err
  profile_check named.pb.gz
  [ ! -e -.symbolized ] || fail 'a file called -'
}

# Inlined calls that are in .dwo files are missing without them, and so is told.
test_split_debug_info_is_told() {
  cat >split.c <<'C'
#include <stdlib.h>
void *volatile kept;
static inline __attribute__((always_inline)) void inlined(void) { kept = malloc(1000); }
__attribute__((noinline)) void own(void) { inlined(); __asm__ volatile(""); }
int main(void) { for (int i = 0; i < 10; i++) own(); return 0; }
C
  gcc -O1 -g -gsplit-dwarf -o split split.c
  gcc -O1 -g -o whole split.c
  record -q -p 1 -o dwo.pb.gz ./split
  "$heaptap" export -f folded --sort alloc dwo.pb.gz >folded
  matches 'main;own;inlined 10000$' folded
  ! comment_of dwo.pb.gz | grep -q 'inlined calls' || fail 'a comment on split debug info that is there'
  gcc -O1 -g -gsplit-dwarf -o lost split.c # what is known of split stays known
  rm ./*.dwo
  record -q -p 1 -o split.pb.gz ./lost
  record -q -p 1 -o whole.pb.gz ./whole
  comment_of split.pb.gz | grep -qx 'inlined calls of lost are missing: they are in .dwo files, which were not found, or in a .dwp file' ||
    { comment_of split.pb.gz >&2; fail 'no comment'; }
  ! comment_of whole.pb.gz | grep -q 'inlined calls' || fail 'a comment on whole debug info'
  "$heaptap" doctor ./lost >out || true
  matches 'lost has split debug info: functions and lines; its inlined calls are in \.dwo files, which are not where' out
  "$heaptap" doctor ./whole >out || true
  matches 'whole has debug info: functions, inlined calls and lines' out
}

# Four debug sections of a small file, each of which unpacks to 1.9 GiB.
test_doctor_unpacks_no_bomb() {
  echo 'int main(void) { return 0; }' >plain.c
  gcc -g -o bomb plain.c
  cat >makes.py <<'P'
import struct
TOTAL, BLOCK = 1900 << 20, 128 << 10
data = bytearray(open('bomb', 'rb').read())
sections, = struct.unpack_from('<Q', data, 0x28)
count, names = struct.unpack_from('<HH', data, 0x3c)
names, = struct.unpack_from('<Q', data, sections + names * 64 + 24)
packed = struct.pack('<IIQQ', 2, 0, TOTAL, 1) + struct.pack('<IBQ', 0xfd2fb528, 0xe0, TOTAL)
blocks = TOTAL // BLOCK
for i in range(blocks):  # each one byte, repeated
    packed += struct.pack('<I', (i == blocks - 1) | 2 | BLOCK << 3)[:3] + b'\0'
for at in range(sections, sections + count * 64, 64):
    name = names + struct.unpack_from('<I', data, at)[0]
    if data[name:data.index(b'\0', name)] in (b'.debug_info', b'.debug_abbrev', b'.debug_str', b'.debug_line_str'):
        flags, = struct.unpack_from('<Q', data, at + 8)
        struct.pack_into('<Q', data, at + 8, flags | 0x800)
        struct.pack_into('<QQ', data, at + 24, len(data), len(packed))
        data += packed
open('bomb', 'wb').write(data)
P
  cat >measures.py <<'P'
import resource, subprocess, sys
subprocess.run([sys.argv[1], 'doctor', './bomb'])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
P
  python3 makes.py
  timeout "$(seconds 60)" python3 measures.py "$heaptap" >said || :
  [ "$(tail -n 1 said)" -lt 1200 ] || fail "doctor took $(tail -n 1 said) MiB"
}
