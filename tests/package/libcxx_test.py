#!/usr/bin/env python3
"""The installed headers compile with clang and libc++, as a program on macOS or FreeBSD uses them.
libc++ differs from libstdc++: there, std::stop_source::request_stop() is not const.

libc++ has no <stop_token> before version 18, so libcxx/stop_token declares what the standard has.
Called with clang++; skipped (77) if that has no libc++.
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
    if compiled("#include <vector>\n").returncode != 0:
        print(f"{sys.argv[1]} has no libc++ (Debian: libc++-14-dev, libc++abi-14-dev)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
