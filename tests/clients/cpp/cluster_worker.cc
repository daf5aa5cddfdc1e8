// cluster_worker URL QUEUE: a worker that tests/cluster/clients_test.py controls. It reads the
// commands `go` (let handlers return), `hold` (let handlers wait) and `stop`. It prints `began
// PAYLOAD`, `done PAYLOAD` and `error TEXT`.
#include <atomic>
#include <chrono>
#include <iostream>
#include <string>

#include "base/mutex.h"
#include "detent/client.h"
#include "detent/worker.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// Prints whole lines. Thread-safe.
class Lines {
 public:
  void say(const std::string& line) {
    const MutexLock lock(mu_);
    std::cout << line << std::endl;
  }

 private:
  Mutex mu_;
};

int work(const std::string& url, const std::string& queue) {
  std::atomic<bool> may_return = false;  // a flag
  Lines lines;
  const auto handle = [&](const WorkTask& task) -> WorkResult {
    lines.say("began " + task.task.payload.data);
    SystemClock clock;
    Doorbell bell;
    while (!may_return) (void)clock.wait(bell, clock.now() + 5ms);
    const bool is_abandoned = task.abandoned.stop_requested();
    lines.say((is_abandoned ? "abandoned " : "done ") + task.task.payload.data);
    return Done{};
  };
  ClientResult<Client> client = Client::create(url, {.retry_for = 5s});
  if (!client) {
    lines.say("error " + client.error().message);
    return 1;
  }
  Client made = std::move(client).value();
  Worker worker(
      made, queue, handle,
      {.concurrency = 10,
       .prefetch = 20,
       .visibility_timeout = 30s,
       .wait = 1s,
       .on_error = [&](const ClientError& error) { lines.say("error " + error.message); }});
  worker.start();
  for (std::string line; std::getline(std::cin, line) && line != "stop";) {
    may_return = line == "go";
  }
  may_return = true;
  worker.stop();
  return 0;
}

}  // namespace
}  // namespace detent

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: cluster_worker URL QUEUE\n";
    return 2;
  }
  return detent::work(argv[1], argv[2]);
}
