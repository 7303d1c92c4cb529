# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium by its debugging protocol, over the two pipes that --remote-debugging-pipe makes of
descriptors 3 and 4: JSON messages with a NUL behind each. Nothing but Python's library is needed.

    with Browser() as browser:
        page = browser.page("file:///tmp/graph.html", width=1280, height=800)
        page.wait("document.documentElement.dataset.ready")
        page.key("/"), page.type("main")
        print(page.run("document.title"))
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

SECONDS = 30 * int(os.environ.get("TEST_TIME_FACTOR", "5"))


def start():
    """Chromium, or with HEAPTAP_BROWSER=firefox Firefox."""
    if os.environ.get("HEAPTAP_BROWSER") == "firefox":
        from firefox import Firefox  # which takes Page from here
        return Firefox()
    return Browser()


def find():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="heaptap-browser.")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        def pipes():
            # Through numbers that are free, or one pipe would close the other.
            os.dup2(to_read, 100), os.dup2(to_write, 101)
            os.dup2(100, 3), os.dup2(101, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder, "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(to_write)
        self.number, self.rest, self.events = 0, b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.rest += piece
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer.get("result", {})
            self.events.append(answer)

    def page(self, address, width=1280, height=800, dark=False, mobile=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.call("Page.enable"), page.call("Runtime.enable"), page.call("Log.enable"), page.call("Network.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        page.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        page.go(address)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def go(self, address):
        self.call("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def wait(self, script, what=None):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                value = self.run(f"(found => found instanceof Node ? true : found)({script})")
            except RuntimeError:  # while it loads
                value = None
            if value:
                return value
            time.sleep(0.02)
        seen = self.run("location.href + ' ' + document.activeElement.outerHTML.slice(0, 100) + ' ' + document.body.innerText.slice(0, 600)")
        raise RuntimeError("\n".join(["waited in vain for " + (what or script), *self.complaints(), seen]))

    KEYS = {"/": 191, "Escape": 27, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9}

    def key(self, *names, shift=False):
        for name in names:
            text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
            extra = {"text": text} if text else {}
            common = dict(key=name, windowsVirtualKeyCode=self.KEYS.get(name, ord(name[0].upper())), modifiers=8 if shift else 0)
            self.call("Input.dispatchKeyEvent", type="keyDown", **common, **extra)
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def mouse(self, kind, x, y, button="none", buttons=0, count=0, shift=False):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=count,
                  modifiers=8 if shift else 0)

    def click(self, x, y, shift=False):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, "left", 1, 1, shift)
        self.mouse("mouseReleased", x, y, "left", 0, 1, shift)

    def drag(self, x0, y0, x1, y1):
        self.mouse("mouseMoved", x0, y0)
        self.mouse("mousePressed", x0, y0, "left", 1, 1)
        for i in range(1, 9):
            self.mouse("mouseMoved", x0 + (x1 - x0) * i / 8, y0 + (y1 - y0) * i / 8, "left", 1)
        self.mouse("mouseReleased", x1, y1, "left", 0, 1)

    def picture(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """What the page's scripts threw, what was refused by its policy, and what it could not load."""
        self.run("1")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"] + " " + event["params"]["entry"].get("url", ""))
        return found

    def requests(self):
        """Addresses that the page asked for."""
        self.run("1")
        return [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"]
