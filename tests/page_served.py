# SPDX-License-Identifier: Apache-2.0
"""page_served.py ADDRESS PID [TOKEN]: uses the page of `heaptap serve` as a person would: the list, a process, the brush on
its time line, the difference of two moments, the address of it. PID has four profiles or more, of a heap that grows."""

import sys

import browser as browsers

ADDRESS, PID = sys.argv[1], sys.argv[2]
TOKEN = sys.argv[3] if len(sys.argv) > 3 else None
READY = "document.documentElement.dataset.ready === '1'"
BUSY = "document.getElementById('profile').hasAttribute('aria-busy')"


def check(what, good):
    if not good:
        sys.exit("page_served: " + what)


def text(page, selector):
    return page.run(f"document.querySelector({selector!r}).innerText")


def settled(page, what, condition):
    page.wait(f"!{BUSY} && {condition}", what)


def give_token(page):
    """The page asks once; a wrong one is said to be wrong."""
    for given in "wrong", TOKEN:
        page.wait("document.getElementById('ask').open", "the question for the token")
        page.run("document.getElementById('token').focus()")
        page.type(given)
        if given == TOKEN:
            check("a wrong token is not called wrong", not page.run("document.getElementById('ask-wrong').hidden"))
        page.key("Enter")
        page.wait("!document.getElementById('ask').open" if given == TOKEN else
                  "!document.getElementById('ask-wrong').hidden", "what follows a token")


def the_list(page):
    row = f"[...document.querySelectorAll('#list tbody tr')].find(tr => tr.innerText.includes('pid {PID}'))"
    page.wait(row, "the process in the list")
    shown = page.run(row + ".innerText")
    check(f"the list has no amount or error: {shown}", "iB" in shown and ("\u00b1" in shown or "sample" in shown or "exact" in shown))
    page.run(row + ".querySelector('a').click()")
    settled(page, "the process", "!document.getElementById('profile').hidden && document.querySelector('#tiles .tile')")


def the_answer(page):
    """On top, with functions that are links."""
    page.wait("document.querySelector('#answer .grows')", "what grows")
    held = text(page, "#answer .held")
    check(f"held says '{held}'", " in use" in held and "take_held" in held and "\u00b1" in held)
    page.run("document.querySelector('#answer .grows button').click()")
    page.wait("location.hash.includes('tab=growth')", "its growth")
    page.run("document.querySelector('#answer .held button').click()")
    page.wait("location.hash.includes('sandwich=take_held')", "its callers and callees")
    page.key("Escape")
    page.wait("!location.hash.includes('sandwich=')", "the whole graph")


def the_flame(page):
    page.wait("profile.flame.shape && profile.flame.shape.count > 2", "the graph")
    drawn = page.run("""(() => { const c = profile.flame.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, 40).data;
        return new Set([...Array(c.width).keys()].map(x => d[(25 * c.width + x) * 4] << 8 | d[(25 * c.width + x) * 4 + 2])).size; })()""")
    check("nothing is drawn", drawn > 1)


def chart_x(page, number):
    return page.run(f"""(() => {{ const c = document.getElementById('chart').getBoundingClientRect();
        const values = [...document.getElementById('moment').options].map(o => o.value).filter(Boolean).reverse();
        window.chosen = values.at({number}); return [c.left, c.top, c.width, c.height]; }})()""")


def the_brush(page):
    page.run("document.getElementById('chart').scrollIntoView({block: 'center'})")
    left, top, width, height = chart_x(page, 0)
    page.drag(left + 70, top + height / 2, left + width - 14, top + height / 2)
    settled(page, "the difference", "location.hash.includes('base=') && !document.getElementById('legend').hidden")
    tiles = text(page, "#tiles")
    check(f"the difference says {tiles}", "Change" in tiles and "\u00b1" in tiles and "Verdict" in tiles and "chance" in tiles)
    page.key("2")
    page.wait("document.querySelector('#table .verdict')", "the table of changes")
    verdicts = set(page.run("[...document.querySelectorAll('#table .verdict')].map(v => v.innerText)"))
    check(f"verdicts are {verdicts}", verdicts)
    page.key("1")
    address = page.run("location.href")
    page.run("document.getElementById('chart').focus()")
    page.key("ArrowLeft")
    settled(page, "one moment", "!location.hash.includes('base=') && location.hash.includes('id=')")
    page.key("ArrowLeft", shift=True)
    settled(page, "two moments by keys", "location.hash.includes('base=')")
    return address


def the_rest(page):
    page.run("document.getElementById('base').value = ''; document.getElementById('base').dispatchEvent(new Event('change'))")
    settled(page, "no difference any more", "!location.hash.includes('base=')")
    page.key("5")
    page.wait("document.querySelector('#growth').innerText.includes('snapshots')", "growth")
    check("growth has no error", "\u00b1" in text(page, "#growth"))
    said = text(page, "#growth .sum")
    check(f"the tab says '{said}', the head '{text(page, '#answer .grows')}'", said == text(page, "#answer .grows"))
    check(f"of a heap that grows it is said: {said}", "take_held grows since " in said)
    page.key("1")
    page.run("document.getElementById('lines').click()")
    settled(page, "source lines", "location.hash.includes('lines=1') && profile.flame.shape.graph.lines")
    page.run("document.getElementById('home').click()")
    page.wait("!document.getElementById('list').hidden", "the list again")


def an_answer_that_is_late(page):
    """Of what was opened before: it must not replace what is looked at now."""
    page.run("""window.held = []; window.plain = fetch; window.fetch = (url, ...rest) => !String(url).includes('lines=1') ?
        plain(url, ...rest) : new Promise(done => held.push(() => plain(url, ...rest).then(answer => {
            const copy = answer.clone(); done(answer); return copy.text(); }).then(() => setTimeout(() => window.arrived = 1, 300))));
        document.getElementById('home').click()""")
    the_list(page)
    page.run("document.getElementById('lines').click()")
    page.wait("held.length === 1", "the question for source lines")
    page.run("document.getElementById('home').click()")
    page.wait("!document.getElementById('list').hidden", "the list meanwhile")
    the_list(page)
    page.run("held[0]()")
    page.wait("window.arrived", "the late answer")
    check("a late answer is shown", not page.run("profile.flame.shape.graph.lines"))
    page.run("window.fetch = plain; document.getElementById('home').click()")


def main():
    with browsers.start() as browser:
        page = browser.page(ADDRESS)
        if TOKEN:
            give_token(page)
        page.wait(READY, "the page")
        the_list(page)
        the_flame(page)
        the_answer(page)
        address = the_brush(page)
        the_rest(page)
        an_answer_that_is_late(page)
        complaints = [line for line in page.complaints() if not (TOKEN and " 401 " in line)]
        check("complaints: " + "; ".join(complaints), not complaints)
        outside = [url for url in page.requests() if not url.startswith(ADDRESS)]
        check(f"requests to elsewhere: {outside}", not outside)
        if not TOKEN:
            page.go("about:blank")
            page.go(address)
            page.wait(READY + " && !document.getElementById('legend').hidden", "the difference by its address")
        page.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.injected = 1'}))")
        check("the policy lets inline scripts run", not page.run("window.injected"))


main()
