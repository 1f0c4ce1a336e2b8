#!/usr/bin/env python3
"""Looks at pages in headless Chromium through its DevTools protocol, at viewports as narrow as asked.

    view_page.py BROWSER OUTPUT_DIR PAGE.html

Chromium's own window is never narrower than 500 pixels; the protocol sets the page's viewport itself.
For every width of 1280, 768 and 390, light and dark, it takes a screenshot of the whole page; it
prints the page as a PDF. It prints a line for every fault: an error on the console, a request that
is not for the file, a page wider than its viewport, a text that is cut. Folds are opened, so that
what they hide is looked at as well. Exit code 1 after a fault.
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WIDTHS = (1280, 768, 390)
# Elements that scroll by themselves may hold more than they show.
FAULTS = r"""
(() => {
  const faults = [], width = document.documentElement.clientWidth;
  if (width !== WIDTH) faults.push('viewport of ' + width);
  const most = document.documentElement.scrollWidth;
  if (most > width) faults.push('page of ' + most + ' pixels');
  const scrolls = e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  const inside = e => { for (let p = e; p; p = p.parentElement) if (scrolls(p)) return p; return null; };
  for (const e of document.querySelectorAll('h1,h2,h3,p,li,figcaption,caption,summary,dt,dd,nav,svg')) {
    const box = e.getBoundingClientRect();
    if (box.width === 0 || e.closest('td')) continue;
    const scroller = e.tagName === 'CAPTION' ? null : inside(e);
    if (box.right > width + 0.5 && !scroller) {
      faults.push(e.tagName.toLowerCase() + ' ends at ' + Math.round(box.right) + ': ' +
                  e.textContent.trim().slice(0, 50));
    }
  }
  for (const svg of document.querySelectorAll('svg[viewBox]')) {
    const view = svg.viewBox.baseVal;
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBBox();
      if (text.hasAttribute('transform')) continue;
      if (box.x < -0.5 || box.x + box.width > view.width + 0.5) {
        faults.push('text of a picture is cut: ' + text.textContent);
      }
    }
  }
  return faults;
})()
"""


class Browser:
    """Messages are JSON texts that end with a zero byte, over the two pipes 3 and 4."""

    def __init__(self, path, profile):
        to_read, self.to_write = os.pipe()
        self.to_answer, from_write = os.pipe()
        # The child's 3 and 4 are dup'd from high numbers, so that neither overwrites the other.
        high = [os.dup(to_read), os.dup(from_write)]
        for end in (to_read, from_write):
            os.close(end)
        command = ["bash", "-c", f'exec "$@" 3<&{high[0]} 4>&{high[1]}', "bash", path, "--headless",
                   "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                   f"--user-data-dir={profile}", "--disable-background-networking",
                   "--disable-component-update", "--no-first-run", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=high, stderr=subprocess.DEVNULL)
        for end in high:
            os.close(end)
        self.number, self.pending, self.events, self.session = 0, b"", [], None

    def receive(self):
        while b"\0" not in self.pending:
            more = os.read(self.to_answer, 1 << 20)
            if not more:
                sys.exit("view_page.py: chromium has ended")
            self.pending += more
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"view_page.py: {method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive())

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")


def faults_of_events(events, address):
    for event in events:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled":
            yield f"console: {parameters['args']}"
        elif event.get("method") == "Runtime.exceptionThrown":
            yield f"console: {parameters['exceptionDetails']['text']}"
        elif event.get("method") == "Log.entryAdded":
            yield f"console: {parameters['entry']['text']}"
        elif event.get("method") == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url.split("#")[0] != address:
                yield f"asks for {url}"


def look(browser, output, page):
    address = page.resolve().as_uri()
    faults = []
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            browser.events = []
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                         deviceScaleFactor=1, mobile=False)
            browser.call("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.call("Page.navigate", url=address)
            browser.wait_for("Page.loadEventFired")
            name = f"{scheme}{width}"
            picture = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
            (output / f"{name}.png").write_bytes(base64.b64decode(picture["data"]))
            browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            faults += [f"{name}: {fault}" for fault in browser.evaluate(FAULTS.replace("WIDTH", str(width)))]
            faults += [f"{name}: {fault}" for fault in faults_of_events(browser.events, address)]
    whole = browser.evaluate("""['h1', 'h2', 'svg', 'th[aria-sort=none]'].filter(
        what => !document.querySelector(what)).concat(
        document.querySelector('main') ? [] : ['main'])""")
    faults += [f"the page has no {what}: its script or text is not whole" for what in whole]
    pdf = browser.call("Page.printToPDF", printBackground=True)
    (output / "print.pdf").write_bytes(base64.b64decode(pdf["data"]))
    return faults


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    output, page = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    if not page.is_file():
        sys.exit(f"{page}: is no file; expected a page")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(sys.argv[1], profile)
        try:
            faults = look(browser, output, page)
        finally:
            browser.process.terminate()
            browser.process.wait()
    for fault in faults:
        print(f"{page.name}: {fault}")
    sys.exit(1 if faults else 0)


main()
