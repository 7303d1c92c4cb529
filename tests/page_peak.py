# SPDX-License-Identifier: Apache-2.0
"""page_peak.py ADDRESS: the page of a program that freed all before it ended shows its peak, and says so."""

import sys

import browser as browsers

ADDRESS = sys.argv[1]
SHOWN = "!document.getElementById('profile').hasAttribute('aria-busy') && profile.flame.shape && "


def check(what, good):
    if not good:
        sys.exit("page_peak: " + what)


def main():
    with browsers.start() as browser:
        page = browser.page(ADDRESS)
        page.wait(SHOWN + "profile.flame.shape.count > 2", "a graph")
        notice = "document.getElementById('notice')"
        check(f"the type is {page.run('profile.flame.shape.measure.kind.name')}",
              page.run("profile.flame.shape.measure.kind.name") == "peak")
        said = page.run(notice + ".innerText")
        check(f"said is '{said}'", said.startswith("At its end nothing was in use: this is its peak."))
        check("the peak is no type", page.run("[...document.getElementById('type').options].some(o => o.value === 'peak')"))
        page.run(notice + ".querySelector('button').click()")
        page.wait("location.hash.includes('type=inuse')", "the end")
        nothing = page.run("document.getElementById('nothing').innerText")
        check(f"of the end it says '{nothing}'", nothing == "Nothing sampled: less than 12.0 KiB (95 %).")
        check("a blank box", page.run("document.getElementById('graph').hidden") and page.run(notice + ".hidden"))
        check("complaints: " + "; ".join(page.complaints()), not page.complaints())


main()
