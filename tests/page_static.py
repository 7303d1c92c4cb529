# SPDX-License-Identifier: Apache-2.0
"""page_static.py FILE.html: uses the page of `heaptap export -f flamegraph` of a profile of tests/targets/leaky as a
person would, and checks what it shows."""

import sys

import browser as browsers

ADDRESS = "file://" + sys.argv[1]
READY = "document.documentElement.dataset.ready === '1'"
FUNCTIONS = "[...document.querySelectorAll('#table tbody .link')].map(link => link.innerText)"
FOUND = "document.getElementById('found').textContent"


def check(what, good):
    if not good:
        sys.exit("page_static: " + what)


def text(page, selector):
    return page.run(f"document.querySelector({selector!r}).innerText")


def box_of(page, name):
    """The middle of the widest box of a function on the screen; its width."""
    return page.run("""(() => {
        const flame = profile.flame, found = [];
        flame.rows.forEach(({ shape, nodes }, row) => nodes.forEach(node => {
            if (shape.name(node) !== '%s') return;
            const scale = flame.width / (flame.to - flame.from), left = (shape.start[node] - flame.from) * scale;
            found.push([left, shape.width[node] * scale, row]);
        }));
        found.sort((a, b) => b[1] - a[1]);
        const box = flame.canvas.getBoundingClientRect(), [left, width, row] = found[0];
        return [box.left + Math.max(0, left) + Math.min(width, flame.width) / 2, box.top + row * 18 + 9 - flame.host.scrollTop, width];
    })()""" % name)


def graph(page):
    x, y, width = box_of(page, "remember_request")
    check(f"remember_request is {width} pixels wide", width > 300)
    page.mouse("mouseMoved", x, y)
    page.wait("!document.getElementById('tip').hidden", "the tip")
    tip = text(page, "#tip")
    for word in "remember_request", "In use", "\u00b1", "Objects in use", "Module", "leaky":
        check(f"the tip has no {word}: {tip}", word in tip)
    page.click(*box_of(page, "handle_request")[:2])
    page.wait("profile.flame.zoomed && Math.abs(profile.flame.to - profile.flame.from - "
              "profile.flame.shape.width[profile.flame.zoomed]) < 1e-6 * profile.flame.shape.width[0]", "the zoom's end")
    check("zoomed in, handle_request is not as wide as the graph",
          abs(box_of(page, "handle_request")[2] - page.run("profile.flame.width")) < 3)
    check("the zoom is not in the address", "zoom=" in page.run("location.hash"))
    page.run("history.back()")
    page.wait("!location.hash.includes('zoom=')", "the way back")


def beginning(page):
    """The graph begins at main, with sizes in its boxes; the frames before it are there for who asks."""
    second = "[...profile.flame.rows[1].nodes].map(node => profile.flame.rows[1].shape.name(node))"
    check(f"the graph begins at {page.run(second)}", "main" in page.run(second))
    drawn = page.run("""(() => { const { context } = profile.flame, texts = [], draw = context.fillText;
        context.fillText = text => texts.push(text); profile.flame.draw(); context.fillText = draw; return texts; })()""")
    for name in "all", "main", "handle_request":
        size = drawn[drawn.index(name) + 1]
        check(f"{name} has no size: {drawn}", size.endswith("iB"))
    page.run("document.getElementById('starts').click()")
    page.wait("location.hash.includes('starts=1')", "the frames that start the program")
    check(f"asked for all, the graph begins at {page.run(second)}", "main" not in page.run(second))
    page.run("document.getElementById('starts').click()")
    page.wait("!location.hash.includes('starts=1')", "without them again")


def folding(page):
    """Functions with one label are one, as in `heaptap report`."""
    folded = page.run("""(() => { const frames = new Frames({ files: [""], modules: [""], frames: { file: [0, 0, 0], module: [0, 0, 0],
        role: [1, 1, 0], name: ["JS:*f a.js:1", "JS:~f a.js:1", "g"], label: ["f a.js:1", "f a.js:1", ""] } });
        return [[...frames.of], frames.names, frames.versions.length]; })()""")
    check(f"folded is {folded}", folded == [[0, 0, 1], ["f a.js:1", "g"], 2])


def search(page):
    page.key("/")
    check("'/' does not lead to the search", page.run("document.activeElement.id") == "search")
    page.type("remember_")
    found = page.wait(FOUND, "what is found")
    check(f"found says {found}", "found " in found and "%" in found and "\u00b1" in found)
    page.run("document.getElementById('search').select()")
    page.type("remember_(")
    page.wait(FOUND + ".startsWith('not an expression')", "a complaint about the expression")
    page.key("Escape")
    page.wait(FOUND + " === ''", "no search any more")


def keyboard(page):
    page.run("document.querySelector('#graph canvas').focus()")
    page.key("ArrowDown", "ArrowDown", "ArrowDown")
    said = page.run("document.getElementById('said').textContent")
    check(f"moving by keys says '{said}'", "iB" in said)
    check("no panel about the frame", not page.run("document.getElementById('chosen').hidden"))
    page.key("s")
    page.wait("location.hash.includes('sandwich=')", "callers and callees")
    check("no way back from the sandwich", "back to the whole" in text(page, "#crumbs"))
    page.key("Escape")
    page.wait("!location.hash.includes('sandwich=')", "the whole graph")
    page.key("i")
    page.wait("location.hash.includes('inverted=1')", "the inverted graph")
    check("inverted, remember_request is not at the top", page.run(
        "[...profile.flame.rows[1].nodes].some(node => profile.flame.rows[1].shape.name(node) === 'remember_request')"))
    page.key("i")
    page.key("t")
    page.wait("location.hash.includes('type=inuse-objects')", "another sample type")


def views(page):
    page.key("2")
    page.wait("document.querySelector('#table tbody tr')", "the table")
    head = page.run("[...document.querySelectorAll('#table thead th')].map(th => th.innerText.replace(/[^a-z]/g, '')).join(' ')")
    check(f"columns are {head}", head.startswith("flat") and "error" in head)
    check(f"functions are {page.run(FUNCTIONS)}", "remember_request" in page.run(FUNCTIONS) and "main" not in page.run(FUNCTIONS))
    check("the rest is not told", "hold nothing themselves are not shown" in text(page, "#table caption"))
    check(f"no callers: {text(page, '#table tbody tr')}", "< handle_request < main" in text(page, "#table tbody tr"))
    page.run("document.querySelector('#table [data-key=cum]').click()")
    order = "[...document.querySelectorAll('#table th')].find(th => th.innerText.includes('cum')).getAttribute('aria-sort')"
    check("not sorted by cum", page.run(order) == "descending")
    check("by cum, main is not shown", "main" in page.run(FUNCTIONS))
    page.key("3")
    page.wait("document.querySelector('#tree [role=treegrid] tr[aria-level]')", "the tree")
    page.run("document.querySelector('#tree tr[data-node]').focus()")
    page.key("ArrowDown")
    check("the tree has no moving focus", page.run("document.activeElement.getAttribute('aria-level')") == "2")
    page.key("4")
    page.wait("document.querySelector('#leaks .card')", "leaks")
    check("leaks do not say that the program has ended", "has ended" in text(page, "#leaks"))
    check("no error beside a leak", "\u00b1" in text(page, "#leaks"))
    page.key("d")
    page.wait("document.documentElement.dataset.theme === 'dark'", "dark mode")


def main():
    with browsers.start() as browser:
        page = browser.page(ADDRESS)
        page.wait(READY, "the page")
        for step in graph, beginning, folding, search, keyboard, views:
            step(page)
        check("complaints: " + "; ".join(page.complaints()), not page.complaints())
        check("requests: " + " ".join(page.requests()), set(page.requests()) <= {ADDRESS})  # Firefox does not tell of files
        shared = browser.page(ADDRESS + "#tab=table&search=remember_&type=alloc")
        shared.wait(READY, "the page of an address")
        check("the address is not what is shown", shared.run("document.getElementById('type').value") == "alloc" and
              shared.run("!document.getElementById('table').hidden") and "found" in shared.run(FOUND))
        narrow = browser.page(ADDRESS, width=400, mobile=True)
        narrow.wait(READY, "the page in a narrow window")
        check("wider than a narrow window", narrow.run("document.documentElement.scrollWidth") <= 400)


main()
