"""Chromium without a window, driven over its debugging pipe: no port, no driver program, no package."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

_QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)


def chromium() -> str:
    """The program; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs chromium, chromium-browser or google-chrome on PATH (`make test` installs it where it may)")
    return found


class Browser:
    """One page of one browser. ``problems`` are the errors that its console has shown."""

    def __init__(self, profile: Path) -> None:
        (to_read, self._write), (self._read, to_write) = os.pipe(), os.pipe()

        def connect() -> None:
            # Chromium reads commands from descriptor 3 and writes answers to 4; first out of the way of these two.
            read, write = (fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in (to_read, to_write))
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [chromium(), *_QUIET.split(), f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            command, close_fds=False, preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._count, self.problems = b"", 0, list[str]()
        try:
            target = self._send("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "DOM"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol to the page."""
        return self._send(method, self._session, **parameters)

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait for it."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"].get("exception", {}).get("description", answer))
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 60.0) -> None:
        """Until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not within {seconds} s: {condition}"
            time.sleep(0.02)

    def size(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def prefer(self, scheme: str) -> None:
        """Light or dark; and no motion that was not asked for."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def press(self, key: str, code: int, times: int = 1) -> None:
        """A key on the element that has the focus."""
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def drop(self, file: Path) -> None:
        """A file dropped onto the page."""
        content, name = json.dumps(list(file.read_bytes())), json.dumps(file.name)
        self.run(
            f"""(() => {{
              const dataTransfer = new DataTransfer();
              dataTransfer.items.add(new File([new Uint8Array({content})], {name}));
              for (const kind of ["dragover", "drop"]) {{
                document.body.dispatchEvent(new DragEvent(kind, {{ dataTransfer, bubbles: true, cancelable: true }}));
              }}
            }})()"""
        )

    def picture(self, path: Path, full: bool = True) -> None:
        """A screenshot, of the window or of the full page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _send(self, method: str, session: str = "", **parameters: Any) -> Any:
        self._count += 1
        message = {
            "id": self._count,
            "method": method,
            "params": parameters,
            **({"sessionId": session} if session else {}),
        }
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer}"
                return answer["result"]
            self._note(answer)

    def _receive(self) -> Any:
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], 120)[0], "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event: Any) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(json.dumps(parameters["entry"]))
        if event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.problems.append(json.dumps(parameters["args"]))
