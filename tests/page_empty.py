# SPDX-License-Identifier: Apache-2.0
"""page_empty.py ADDRESS COMMAND: with nothing to show the page has three commands to type, and COMMAND is one of them."""

import sys

import browser as browsers

ADDRESS, COMMAND = sys.argv[1], sys.argv[2]


def main():
    with browsers.start() as browser:
        page = browser.page(ADDRESS)
        page.wait("document.querySelectorAll('#list code').length", "commands")
        shown = page.run("[...document.querySelectorAll('#list .commands li')].map(li => li.querySelector('code').innerText + "
                         "(li.querySelector('button') ? '' : ' cannot be copied'))")
        if len(shown) != 3 or COMMAND not in shown:
            sys.exit(f"page_empty: commands are {shown}")


main()
