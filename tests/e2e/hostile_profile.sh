# SPDX-License-Identifier: Apache-2.0
# A profile whose names are attacks on a terminal, a page and a table: escape sequences, C1 controls, bidirectional controls,
# line ends, markup, formulas. Nothing of that is printed, by any command and in any format.

make_profiles() {
  python3 - <<'EOF'
import gzip

EVIL = "\x1b[31m\x07\u009b32m\u202e\u2066\x7f\r\n\t=\uff1d</script><b>\"'`$(id)\x00"


def number(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(n, value):
    if isinstance(value, int):
        return number(n << 3) + number(value)
    return number(n << 3 | 2) + number(len(value)) + value


def profile(types, evil):
    strings = [b""]

    def string(text):
        text = text.encode()
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    def label(key, text=None, value=None, unit=None):
        what = field(2, string(text)) if text else field(3, value) + field(4, string(unit))
        return field(3, field(1, string(key)) + what)

    out = b"".join(field(1, field(1, string(t)) + field(2, string(u))) for t, u in types)
    for i in 1, 2, 3:
        values = b"".join(number(1000 * i if j % 2 else 10 * i) for j in range(len(types)))
        labels = label("key" + evil, "value" + evil) + label("bytes", value=4096, unit="unit" + evil) + label("thread", "t" + evil)
        out += field(2, field(1, number(i) + number(i % 3 + 1)) + field(2, values) + labels)
        out += field(4, field(1, i) + field(2, 1) + field(3, 0x1000 + i) + field(4, field(1, i) + field(2, i)))
        names = [string(name + evil) for name in ("f%d" % i, "g%d" % i, "file%d" % i)]
        out += field(5, field(1, i) + b"".join(field(n + 2, name) for n, name in enumerate(names)))
    out += field(3, field(1, 1) + field(2, 0x1000) + field(3, 0x9000) + field(5, string("/lib" + evil)) + field(6, string("id" + evil)))
    for comment in "program: ", "service: ", "samples: 12 taken ", "heaptap 1.0 ", "":
        out += field(13, string(comment + evil))
    out += field(11, field(1, string("space")) + field(2, string("bytes"))) + field(12, 524288)
    out += field(14, string(types[-1][0])) + field(15, string("http://x/" + evil))
    return gzip.compress(b"".join(field(6, text) for text in strings) + out)


usual = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
open("usual.pb.gz", "wb").write(profile(usual, EVIL))
open("types.pb.gz", "wb").write(profile([("alloc" + EVIL, "count" + EVIL), ("inuse_space", "bytes" + EVIL)], EVIL))
open(b"name\x1b[31m\xc2\x9b\xe2\x80\xae.pb.gz", "wb").write(profile(usual, ""))
open(b"broken\x1b[31m.pb.gz", "wb").write(b"no profile")
EOF
}

# is_clean WHAT FILE: without control characters but tab and line end, C1 controls, bidirectional controls, and wrong UTF-8
is_clean() {
  python3 - "$@" <<'EOF'
import re, sys
text = open(sys.argv[2], "rb").read().decode()  # fails if it is no UTF-8
found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
assert not found, "%s: %r" % (sys.argv[1], text[max(0, found.start() - 40):found.end() + 10])
EOF
}

# prints_nothing_evil COMMAND...
prints_nothing_evil() {
  "$heaptap" "$@" >out 2>err || :
  at_least 1 "$(cat out err | wc -c)" "bytes that '$*' prints"
  is_clean "$*" out || fail "output of '$*'"
  is_clean "$*" err || fail "messages of '$*'"
}

test_nothing_reaches_the_terminal() {
  make_profiles
  for file in *.pb.gz; do
    for command in report 'report --tree' 'report --inverted' 'report --leaks' 'report --lines' 'report --by thread' \
      'report --json' 'report -v' 'check -v' symbolize ls 'diff usual.pb.gz' 'diff --json usual.pb.gz'; do
      # shellcheck disable=SC2086
      prints_nothing_evil $command "$file"
    done
  done
  prints_nothing_evil ls .
  prints_nothing_evil report .
  prints_nothing_evil check .
  prints_nothing_evil merge -o sum.pb.gz usual.pb.gz broken*
}

test_nothing_is_in_a_file_of_another_format() {
  make_profiles
  for format in folded flamegraph speedscope csv json massif heaptrack; do
    for file in usual.pb.gz types.pb.gz; do
      prints_nothing_evil export -f $format $file
    done
  done
  prints_nothing_evil export -f flamegraph usual.pb.gz
  ! grep -q '</script><b>' out || fail 'markup in the page'
  prints_nothing_evil export -f csv usual.pb.gz
  ! grep -qE '(^|,)[=+@-][^0-9,]' out || fail "a cell is a formula: $(grep -E '(^|,)[=+@-]' out | head -n 1)"
}
