#include "bench/server/running_server.h"

#include <chrono>
#include <exception>
#include <string>
#include <thread>

#include "bench/server/server_socket.h"

namespace detent::bench {

RunningServer::RunningServer(ServerPeer& peer, const std::filesystem::path& parent, Loading loading)
    : peer_(peer), place_{.folder = parent / "server", .port = free_port()} {
  std::filesystem::remove_all(place_.folder);  // left by a server that could not start
  std::filesystem::create_directory(place_.folder);
  peer_.prepare(place_);
  start(loading);
  connect_when_ready();
}

RunningServer::~RunningServer() {
  process_.reset();
  std::error_code ignored;  // main() removes the parent folder
  std::filesystem::remove_all(place_.folder, ignored);
}

void RunningServer::start(Loading loading) {
  process_.emplace(ProcessOptions{.command = peer_.command(place_, loading),
                                  .log = place_.folder / "server.log",
                                  .account = peer_.account()});
}

std::unique_ptr<ServerClient> RunningServer::connect_when_ready() {
  constexpr double kPatienceSeconds = 120;
  for (const Stopwatch watch;;) {
    try {
      return connect();
    } catch (const ServerError&) {
      process_->check_alive();
      if (watch.wall_seconds() > kPatienceSeconds) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

double RunningServer::crash_and_restart() {
  process_->kill();
  const Stopwatch watch;
  start(Loading::as_promised);
  const std::int64_t in_an_hour = 3'600'000;
  if (connect_when_ready()->put({&in_an_hour, 1}) != 1) throw ServerError("a put was refused");
  return watch.wall_seconds();
}

void RunningServer::expect_count(std::uint64_t count) const {
  const std::uint64_t held = connect()->count();
  if (held == count) return;
  throw ServerError("holds " + std::to_string(held) + " tasks, not " + std::to_string(count));
}

void RunningServer::let_rest() const {
  constexpr double kLook = 0.2;  // s
  for (int looks = 0; looks < 300; ++looks) {
    const ProcessCost before = cost();
    std::this_thread::sleep_for(std::chrono::duration<double>(kLook));
    if ((cost() - before).cpu_microseconds < kLook * 1e4) return;
  }
}

bool Progress::is_over(double limit_seconds) const {
  if (watch.wall_seconds() > limit_seconds) {
    throw ServerError("only " + std::to_string(finished.load(std::memory_order_relaxed)) + " of " +
                      std::to_string(accepted.load(std::memory_order_relaxed)) +
                      " tasks came back");
  }
  if (has_failed.load(std::memory_order_relaxed)) return true;
  // Acquire: the count includes all tasks that were accepted before.
  return has_all.load(std::memory_order_acquire) &&
         finished.load(std::memory_order_relaxed) >= accepted.load(std::memory_order_relaxed);
}

void run_threads(const std::vector<std::function<void()>>& bodies, Progress& progress) {
  std::vector<std::exception_ptr> failures(bodies.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          bodies[i]();
        } catch (...) {
          failures[i] = std::current_exception();
          progress.has_failed.store(true, std::memory_order_relaxed);
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace detent::bench
