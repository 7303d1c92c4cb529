# SPDX-License-Identifier: Apache-2.0
"""Reads heaptap's profiles: as much of the pprof format as the measurements here need.

Field numbers: proto/profile.proto.
"""
import gzip
import re
import zlib
from collections import defaultdict

COLUMNS = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, integer or bytes) of one message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, value


def packed(value):
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        numbers.append(number)
    return numbers


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Row:
    """One sample: its values by COLUMNS, location ids (leaf first), labels."""
    __slots__ = ("values", "locations", "labels")

    def __init__(self):
        self.values, self.locations, self.labels = [], [], {}


class Profile:
    def __init__(self, path):
        with open(path, "rb") as file:
            raw = file.read()
        try:
            raw = gzip.decompress(raw)
        except (OSError, zlib.error) as error:
            raise ValueError(f"{path}: {error}") from error
        strings, rows, types, comments = [], [], [], []
        self.period = 1
        self.location_functions, self.location_address, self.location_mapping = {}, {}, {}
        functions, mappings = {}, {}
        for number, value in fields(raw):
            if number == 1:
                types.append(dict(fields(value)).get(1, 0))
            elif number == 2:
                rows.append(self._row(value))
            elif number == 3:
                mapping = dict(fields(value))
                mappings[mapping[1]] = mapping.get(5, 0)
            elif number == 4:
                self._location(value)
            elif number == 5:
                function = dict(fields(value))
                functions[function[1]] = function.get(2, 0)
            elif number == 6:
                strings.append(value.decode("utf-8", "replace"))
            elif number == 12:
                self.period = value
            elif number == 13:
                comments.extend(packed(value))
        self.types = [strings[t] for t in types]
        self.comments = [strings[c] for c in comments]
        self.function_name = {key: strings[name] for key, name in functions.items()}
        self.mapping_name = {key: strings[name] for key, name in mappings.items()}
        for row in rows:
            row.labels = {strings[k]: strings[v] if is_string else v for k, (is_string, v) in row.labels.items()}
        self.rows = rows

    @staticmethod
    def _row(data):
        row = Row()
        for number, value in fields(data):
            if number == 1:
                row.locations.extend(packed(value))
            elif number == 2:
                row.values.extend(map(signed, packed(value)))
            elif number == 3:
                label = dict(fields(value))
                row.labels[label[1]] = (True, label[2]) if label.get(2) else (False, label.get(3, 0))
        return row

    def _location(self, data):
        key = address = mapping = 0
        lines = []
        for number, value in fields(data):
            if number == 1:
                key = value
            elif number == 2:
                mapping = value
            elif number == 3:
                address = value
            elif number == 4:
                lines.append(dict(fields(value)).get(1, 0))
        self.location_functions[key] = lines
        self.location_address[key], self.location_mapping[key] = address, mapping

    def frames(self, row):
        """Function names, leaf first, inlined ones included; an unnamed frame is its address."""
        for location in row.locations:
            lines = self.location_functions[location]
            if not lines:
                yield f"{self.location_address[location]:#x}"
            for function in lines:
                yield self.function_name[function]

    def total(self, column):
        at = self.types.index(column)
        return sum(row.values[at] for row in self.rows)

    def flat(self):
        """{leaf function: [values]}"""
        sums = defaultdict(lambda: [0] * len(self.types))
        for row in self.rows:
            name = next(self.frames(row), "")
            for i, value in enumerate(row.values):
                sums[name][i] += value
        return sums

    def comment(self, pattern):
        """The first comment that matches, as a match object, or None."""
        return next(filter(None, (re.search(pattern, comment) for comment in self.comments)), None)
