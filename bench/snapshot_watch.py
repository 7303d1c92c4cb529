#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""snapshot_watch.py FOLDER SECONDS: polls a folder every 5 ms, decodes each numbered profile as soon as it appears, and says
how many there were, how far apart, and how many were not whole."""
import gzip
import os
import re
import sys
import time

folder, seconds = sys.argv[1], float(sys.argv[2])
seen, bad, times = {}, 0, []
end = time.monotonic() + seconds
while time.monotonic() < end:
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name in seen or not re.search(r"\d{4}\.pb\.gz$", name):
            continue
        seen[name] = time.monotonic()
        times.append(os.stat(os.path.join(folder, name)).st_mtime)
        try:
            raw = gzip.decompress(open(os.path.join(folder, name), "rb").read())
            assert len(raw) > 100
        except Exception as error:
            bad += 1
            print("not whole:", name, error)
    time.sleep(0.005)
times = sorted(seen.values())
gaps = sorted(b - a for a, b in zip(times, times[1:]))
print(f"files {len(seen)}, partial {bad}, spacing median {gaps[len(gaps) // 2] * 1e3:.0f} ms, "
      f"least {gaps[0] * 1e3:.0f} ms, worst {gaps[-1] * 1e3:.0f} ms")
