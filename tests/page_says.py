# SPDX-License-Identifier: Apache-2.0
"""page_says.py ADDRESS SELECTOR TEXT [SELECTOR TEXT]...: opens the page and waits until these elements say these texts."""

import sys

import browser as browsers


def main():
    address, wanted = sys.argv[1], sys.argv[2:]
    with browsers.start() as browser:
        page = browser.page(address)
        for selector, text in zip(wanted[::2], wanted[1::2]):
            page.wait(f"document.querySelector({selector!r})?.innerText === {text!r}", f"{selector} with the words: {text}")


main()
