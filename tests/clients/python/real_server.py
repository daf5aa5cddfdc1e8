"""A real server for one test, as a process. Its data folder is temporary.

DETENT_BINARY names the program. The first start takes a free port, and later starts use it again.
"""

import os
import re
import signal
import subprocess
import tempfile

PROGRAM = os.environ["DETENT_BINARY"]


class RealServer:
    def __init__(self, *flags):
        self._folder = tempfile.TemporaryDirectory()
        self._flags = flags
        self._address = "127.0.0.1:0"
        self._process = None
        self.start()

    @property
    def url(self):
        return "http://" + self._address

    def start(self):
        self._process = subprocess.Popen(
            [PROGRAM, "serve", "--data", self.data, "--http", self._address, "--beanstalk", "off",
             "--log-level", "error", *self._flags],
            stdout=subprocess.PIPE, text=True)
        said = ""
        for line in self._process.stdout:
            said += line
            ready = re.search(r"ready at http://(127\.0\.0\.1:\d+)", line)
            if ready:
                self._address = ready[1]
                return
        raise AssertionError("the server has gone: " + said)

    @property
    def data(self):
        return os.path.join(self._folder.name, "data")

    def kill(self):
        """kill -9"""
        self._end(signal.SIGKILL)

    def close(self):
        self._end(signal.SIGKILL)
        self._folder.cleanup()

    def _end(self, number):
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
