"""The nodes of a cluster as processes, and the connections between them and to their database.

Each node has one proxy to the database, and one proxy through which the other nodes reach it:
- A cut proxy forwards no data, but keeps its connections, like a network that drops all packets.
  After mend(), it continues where it stopped.
- A refusing proxy closes its connections and all new ones, like a firewall that rejects them.

Clients reach the nodes directly.
"""

import asyncio
import os
import re
import signal
import subprocess
import threading
import time

from patience import Patience
from private_postgres import die_with_parent


class Wires:
    """The proxies of a test. They run in their own thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class Proxy:
    """Forwards connections on its port to the port `target`, which may change."""

    def __init__(self, wires):
        self.wires = wires
        self.target = None
        self.is_refusing = False
        self.open_ends = set()
        self.port = wires.call(self.open())

    async def open(self):
        self.passing = asyncio.Event()
        self.passing.set()
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    def cut(self):
        """When this returns, no more data is forwarded."""
        self.wires.call(self.let(self.passing.clear))

    def refuse(self):
        """When this returns, all connections are closed."""
        self.wires.call(self.let(self.close_all))

    def mend(self):
        self.is_refusing = False
        self.wires.call(self.let(self.passing.set))

    def close_all(self):
        self.is_refusing = True
        for end in self.open_ends:
            end.transport.abort()

    async def let(self, change):
        change()

    async def serve(self, reader, writer):
        await self.passing.wait()
        if self.is_refusing:
            writer.transport.abort()
            return
        try:
            there, onward = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, onward}
        self.open_ends |= ends
        if self.is_refusing:  # refuse() was called during the connect
            self.close_all()
        await asyncio.gather(self.pass_on(reader, onward), self.pass_on(there, writer))
        self.open_ends -= ends

    async def pass_on(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                await self.passing.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        await self.passing.wait()
        writer.transport.abort() if writer.is_closing() else writer.close()


class Node:
    def __init__(self, name, program, wires, options):
        self.name = name
        self.program = program
        self.options = options
        self.log = options["folder"] / f"{name}.log"
        self.database = Proxy(wires)
        self.database.target = options["database_port"]
        self.others = Proxy(wires)
        self.process = None
        self.port = None
        self.beanstalk_port = None
        self.is_sick = False  # during a fault, when clients cannot expect answers of this node

    def start(self):
        url = self.options.get("database_url") or (
            f"postgresql://postgres@127.0.0.1:{self.database.port}/cluster")
        address = [] if self.options.get("is_reached_directly") else [
            "--node-address", f"127.0.0.1:{self.others.port}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", "--node", self.name, "--store", url, "--http",
                 "127.0.0.1:0", *address, "--node-lease", f"{self.options['lease_ms']}ms",
                 "--shards", str(self.options["shards"]), "--log-level", "debug", "--beanstalk",
                 self.options.get("beanstalk", "off"), *self.options.get("flags", [])],
                stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=die_with_parent)
        line = self.process.stdout.readline()
        found = re.search(r"http://[\d.]+:(\d+)", line)
        if not found:
            raise RuntimeError(f"node {self.name} does not start: {self.log.read_text()[-2000:]}")
        self.port = int(found[1])
        beanstalk = re.search(r"beanstalk at [\d.]+:(\d+)", line)
        self.beanstalk_port = int(beanstalk[1]) if beanstalk else None
        self.others.target = self.port

    def signal(self, number):
        self.process.send_signal(number)

    def stand_still(self):
        """Sends SIGSTOP. When this returns, none of the node's threads runs."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def wait_for_exit(self, seconds=40):
        patience = Patience(seconds, lambda: [self.process.pid])
        while self.process.poll() is None:
            if patience.is_over():
                raise TimeoutError(f"node {self.name} does not exit in {seconds} s of its own")
            time.sleep(0.02)
        self.process.stdout.close()
        return self.process.returncode

    def stop(self):
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.wait_for_exit()
