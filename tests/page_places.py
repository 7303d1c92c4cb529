# SPDX-License-Identifier: Apache-2.0
"""page_places.py ADDRESS: opens each service and process of the list, by its link: all have a graph, and nothing is complained of."""

import sys

import browser as browsers

ADDRESS = sys.argv[1]
READY = "document.documentElement.dataset.ready === '1'"
LINKS = "document.querySelectorAll('#list tbody a')"


def check(what, good):
    if not good:
        sys.exit("page_places: " + what)


def main():
    with browsers.start() as browser:
        page = browser.page(ADDRESS)
        page.wait(READY + f" && {LINKS}.length", "the list")
        opened = "[...document.querySelectorAll('#list .twist')].forEach(b => b.ariaExpanded === 'true' || b.click())"
        page.run(opened)
        count = page.run(LINKS + ".length")
        for number in range(count):
            page.wait(f"!document.getElementById('list').hidden && {LINKS}.length === {count}", "the list again")
            page.run(f"{LINKS}[{number}].click()")
            page.wait("!document.getElementById('profile').hidden && !document.getElementById('profile').hasAttribute('aria-busy') "
                      "&& (!document.getElementById('trouble').hidden || document.querySelector('#tiles .tile'))", "a profile")
            check("trouble: " + page.run("document.getElementById('trouble').textContent"),
                  page.run("document.getElementById('trouble').hidden"))
            page.wait("profile.flame.shape && profile.flame.shape.count > 2", "its graph")
            page.key("5")
            page.wait("document.querySelector('#growth').innerText.length || !document.getElementById('trouble').hidden", "growth")
            check("growth: " + page.run("document.getElementById('trouble').textContent"),
                  page.run("document.getElementById('trouble').hidden"))
            page.run("document.getElementById('home').click()")
        check(f"{count} places are listed, a service and its two processes", count == 3)
        complaints = page.complaints()
        check("complaints: " + "; ".join(complaints), not complaints)


main()
