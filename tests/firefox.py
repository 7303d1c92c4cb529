# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Firefox by WebDriver BiDi, with the same words as browser.py drives Chromium: JSON messages over a
WebSocket that --remote-debugging-port opens. Nothing but Python's library is needed."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from browser import SECONDS, Page


def find():
    return next((path for name in ("firefox-esr", "firefox") if (path := shutil.which(name))), None)


class Socket:
    """A WebSocket, as far as a client of one server needs it."""

    def __init__(self, port, path):
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self.rest = b""
        self.stream.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"the browser says {head!r}")

    def more(self):
        piece = self.stream.recv(1 << 20)
        if not piece:
            raise RuntimeError("the browser has ended")
        self.rest += piece

    def take(self, count):
        while len(self.rest) < count:
            self.more()
        piece, self.rest = self.rest[:count], self.rest[count:]
        return piece

    def send(self, payload, opcode=1):
        length = len(payload)
        head = bytes([0x80 | opcode])
        if length < 126:
            head += bytes([0x80 | length])
        elif length < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", length)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", length)
        mask = os.urandom(4)
        repeated = (mask * (length // 4 + 1))[:length]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(length, "big")
        self.stream.sendall(head + mask + masked)

    def message(self):
        whole = b""
        while True:
            first, second = self.take(2)
            length = second & 127
            if length > 125:
                length = int.from_bytes(self.take(2 if length == 126 else 8), "big")
            payload = self.take(length)
            if first & 15 == 8:
                raise RuntimeError("the browser has closed the connection")
            if first & 15 == 9:
                self.send(payload, 10)
            elif first & 15 < 3:
                whole += payload
                if first & 0x80:
                    return whole


class Firefox:
    def __init__(self, dark=False):
        self.folder = tempfile.mkdtemp(prefix="heaptap-browser.")
        with open(self.folder + "/user.js", "w", encoding="utf-8") as preferences:
            preferences.write(f'user_pref("layout.css.prefers-color-scheme.content-override", {0 if dark else 1});\n'
                              'user_pref("ui.prefersReducedMotion", 1);\nuser_pref("remote.active-protocols", 1);\n'
                              'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
                              'user_pref("browser.shell.checkDefaultBrowser", false);\n'
                              'user_pref("network.captive-portal-service.enabled", false);\n'
                              'user_pref("network.connectivity-service.enabled", false);\n')
        self.log = open(self.folder + "/log", "wb+")
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", self.folder, "about:blank"],
            # Root's Firefox refuses folders of other users.
            env={**os.environ, "HOME": self.folder, "XDG_RUNTIME_DIR": self.folder, "XDG_CACHE_HOME": self.folder},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.number, self.events = 0, []
        try:
            self.socket = Socket(self.port(), "/session")
        except BaseException:
            self.end()
            raise
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def port(self):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with open(self.folder + "/log", encoding="utf-8", errors="replace") as log:
                for line in log:
                    if "BiDi listening on ws://" in line:
                        return int(line.rsplit(":", 1)[1])
            time.sleep(0.05)
        self.log.seek(0)
        raise RuntimeError("Firefox does not start: " + self.log.read().decode(errors="replace")[-500:])

    def __enter__(self):
        return self

    def end(self):
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_):
        try:
            self.call("browser.close")
        except (OSError, RuntimeError):
            pass
        self.end()

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}).encode())
        while True:
            answer = json.loads(self.socket.message())
            if answer.get("id") == self.number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]
            self.events.append(answer)

    def page(self, address, width=1280, height=800, mobile=False):
        page = FirefoxPage(self, self.call("browsingContext.create", type="tab")["context"])
        page.call("browsingContext.setViewport", viewport={"width": width, "height": height}, devicePixelRatio=1)
        page.go(address)
        return page


def value_of(remote):
    """A value as BiDi writes it, as Python's."""
    kind = remote["type"]
    if kind in ("array", "set", "nodelist", "htmlcollection"):
        return [value_of(item) for item in remote.get("value", [])]
    if kind in ("object", "map"):
        return {key if isinstance(key, str) else str(value_of(key)): value_of(item) for key, item in remote.get("value", [])}
    if kind == "node":
        return True
    value = remote.get("value")
    return {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf"), "-0": 0}.get(value, value) \
        if kind == "number" and isinstance(value, str) else value


class FirefoxPage(Page):
    CODES = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
             "ArrowDown": "\ue015", "Tab": "\ue004"}

    def call(self, method, **parameters):
        return self.browser.call(method, context=self.session, **parameters)

    def go(self, address):
        self.call("browsingContext.navigate", url=address, wait="none")

    def run(self, script):
        answer = self.browser.call("script.evaluate", expression=script, target={"context": self.session}, awaitPromise=True,
                                   userActivation=True)
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return value_of(answer["result"])

    def act(self, kind, *actions, **more):
        self.call("input.performActions", actions=[{"type": kind, "id": kind, "actions": list(actions), **more}])

    def key(self, *names, shift=False):
        held = [{"type": "keyDown", "value": "\ue008"}] if shift else []
        for name in names:
            code = self.CODES.get(name, name)
            self.act("key", *held, {"type": "keyDown", "value": code}, {"type": "keyUp", "value": code},
                     *[{"type": "keyUp", "value": "\ue008"} for _ in held])

    def type(self, text):
        for character in text:
            self.key(character)

    def mouse(self, kind, x, y, button="none", buttons=0, count=0, shift=False):
        after = {"mousePressed": [{"type": "pointerDown", "button": 0}], "mouseReleased": [{"type": "pointerUp", "button": 0}]}
        self.act("pointer", {"type": "pointerMove", "x": round(x), "y": round(y)}, *after.get(kind, []),
                 parameters={"pointerType": "mouse"})

    def click(self, x, y, shift=False):
        if shift:
            self.act("key", {"type": "keyDown", "value": "\ue008"})
        super().click(x, y)
        if shift:
            self.act("key", {"type": "keyUp", "value": "\ue008"})

    def picture(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("browsingContext.captureScreenshot")["data"]))

    def mine(self, method):
        self.run("1")
        return [event["params"] for event in self.browser.events if event.get("method") == method
                and event["params"].get("context", event["params"].get("source", {}).get("context")) == self.session]

    def complaints(self):
        return [entry["text"] for entry in self.mine("log.entryAdded") if entry["level"] == "error"]

    def requests(self):
        return [event["request"]["url"] for event in self.mine("network.beforeRequestSent")]
