# SPDX-License-Identifier: Apache-2.0
"""page_service.py ADDRESS SERVICE: a service of two processes, with four profiles of each: one row of the list that opens, a
page of its own with moments to compare. The heap of both grows."""

import sys

import browser as browsers

ADDRESS, SERVICE = sys.argv[1], sys.argv[2]
ROWS = "[...document.querySelectorAll('#list tbody tr')].map(row => row.innerText)"
SETTLED = "!document.getElementById('profile').hasAttribute('aria-busy') && "


def check(what, good):
    if not good:
        sys.exit("page_service: " + what)


def choose(page, field, number):
    """By its place among the moments, the newest first."""
    page.run(f"""(() => {{ const list = document.getElementById('{field}');
        list.value = [...list.options].filter(option => option.value)[{number}].value;
        list.dispatchEvent(new Event('change')); }})()""")


def the_list(page):
    page.wait("document.querySelector('#list tbody tr')", "the list")
    rows = page.run(ROWS)
    check(f"rows are {rows}", len(rows) == 1 and "2 processes" in rows[0] and "iB" in rows[0])
    page.run("document.querySelector('#list .twist').click()")
    rows = page.run(ROWS)
    check(f"opened, rows are {rows}", len(rows) == 3 and all("pid" in row for row in rows[1:]))
    check("the focus is lost", page.run("document.activeElement.getAttribute('aria-expanded')") == "true")
    page.run(f"[...document.querySelectorAll('#list tbody a')].find(a => a.innerText === '{SERVICE}').click()")
    page.wait(SETTLED + "profile.flame.shape && profile.flame.shape.count > 2", "the service")
    title = page.run("document.getElementById('title').innerText")
    check(f"its title is {title}", title == f"2 processes: {SERVICE} (2)")


def moments(page):
    moments = page.run("[...document.getElementById('moment').options].map(option => option.value)")
    check(f"moments are {moments}", len([id for id in moments if id.startswith("at-")]) >= 3)
    choose(page, "moment", 0)
    page.wait(SETTLED + "location.hash.includes('id=at-')", "a moment")
    newest = page.run("profile.flame.shape.value[0]")
    choose(page, "moment", 2)
    page.wait(SETTLED + f"profile.flame.shape.value[0] < {newest}", "an earlier moment")
    earlier = page.run("profile.flame.shape.value[0]")
    choose(page, "moment", 0)
    page.wait(SETTLED + f"profile.flame.shape.value[0] === {newest}", "the last moment again")
    choose(page, "base", 2)
    page.wait(SETTLED + "location.hash.includes('base=at-') && profile.flame.shape.measure.isDiff", "the difference")
    change = page.run("profile.flame.shape.value[0] - profile.flame.shape.base[0]")
    check(f"the change is {change}, from {earlier} to {newest}", change == newest - earlier)
    check("the same samples do not cancel out", page.run("profile.flame.shape.graph.sameProcess"))


def labels(page):
    """The words at both ends of what is compared never meet, wherever these are on the chart."""
    meet = page.run("""(() => { const wide = () => 24, found = [];
        for (let base = Timeline.LEFT; base <= 400; base += 3) for (let at = base + 1; at <= 400; at += 3) {
            const [a, b] = Timeline.places(base, at, 400, wide);
            if (a.line === b.line && a.from < b.from + 24 && b.from < a.from + 24) found.push([base, at]);
            if (Math.min(a.from, b.from) < 0 || Math.max(a.from, b.from) + 24 > 400 + 12) found.push([base, at]);
        }
        return found; })()""")
    check(f"labels meet at {meet[:3]}", not meet)


def main():
    with browsers.start() as browser:
        page = browser.page(ADDRESS)
        for step in the_list, moments, labels:
            step(page)
        check("complaints: " + "; ".join(page.complaints()), not page.complaints())


main()
