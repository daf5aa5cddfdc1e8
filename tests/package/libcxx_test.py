#!/usr/bin/env python3
"""Compiles the public headers with clang and libc++, as programs on macOS and FreeBSD do.

libc++ differs from libstdc++: its std::stop_source::request_stop() is not const. Before version 18
it has no <stop_token>, so libcxx/stop_token declares the standard one.

The argument is a clang++ with libc++ (Debian: libc++-14-dev, libc++abi-14-dev).
"""

import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
COMPILE = [sys.argv[1], "-stdlib=libc++", "-std=c++20", "-fsyntax-only", "-x", "c++",
           f"-I{INCLUDE}", "-isystem", str(HERE / "libcxx"), "-"]
USED = """
using namespace std::chrono_literals;
void use(detent::Scheduler& scheduler, detent::Clock& clock) {
  detent::async_sleep_for(scheduler, 1s, [](boost::system::error_code) {});
  detent::TimerWheel wheel;
  detent::QueueDrive drive(wheel, clock);
  drive.run_ready({}, [](detent::Timer&) noexcept {});
  detent::DelayMap<int, int> map;
  map.insert_or_assign(1, 2, 3s);
  detent::DelayQueue<int> queue;
  queue.pop_for(1s);
  scheduler.schedule_every({.period = 1s}, [](detent::TimerContext& t) { t.stop(); }).release();
}
detent::Task<void> wait(detent::Scheduler& scheduler, std::stop_token stop) {
  co_await detent::timeout_after(scheduler, 1s, [&](std::stop_token token) {
    return detent::Task<void>();
  }, stop);
}
"""


def compiled(source):
    return subprocess.run(COMPILE, input=source, text=True, capture_output=True, check=False)


class Libcxx(unittest.TestCase):
    def test_the_headers_compile(self):
        headers = sorted(path.relative_to(INCLUDE) for path in INCLUDE.rglob("*.h"))
        result = compiled("".join(f'#include "{header}"\n' for header in headers) + USED)
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
