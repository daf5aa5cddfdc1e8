// The adapter of Go's runtime timers and Netty's HashedWheelTimer for runtime_bench. They are
// programs, peers_go/timers.go and peers_java/NettyTimers.java, and get one line per workload.
// Those files describe how they drive their runtimes.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/runtime/child_program.h"
#include "bench/runtime/runtime_peer.h"
#include "detent/check.h"

namespace detent::bench {
namespace {

enum class Refreshes : std::uint8_t { yes, no };

class ProgramRuntime final : public RuntimePeer {
 public:
  ProgramRuntime(std::string name, std::string note, Refreshes refreshes,
                 const std::vector<std::string>& command)
      : name_(std::move(name)), note_(std::move(note)), refreshes_(refreshes), program_(command) {}

  std::string name() const override { return name_; }
  std::string note() const override { return note_; }

  std::uint64_t count_wrong() override {
    return static_cast<std::uint64_t>(only(program_.ask("check")));
  }
  std::optional<double> schedule_and_cancel(const RuntimeLoad& load) override {
    std::ostringstream line;
    line << "pairs " << load.pending << ' ' << load.seed << ' ' << load.threads << ' '
         << load.shortest.count() << ' ' << load.longest.count() << ' ' << load.seconds << ' '
         << load.window;
    return only(program_.ask(line.str()));
  }
  std::optional<CancelCost> cancel(const RuntimeLoad&) override { return std::nullopt; }
  std::optional<double> refresh(const RuntimeLoad& load) override {
    if (refreshes_ == Refreshes::no) return std::nullopt;
    std::ostringstream line;
    line << "refresh " << load.pending << ' ' << load.seed << ' ' << load.seconds;
    return only(program_.ask(line.str()));
  }
  std::vector<double> lateness(const RuntimeLoad& load) override {
    std::ostringstream line;
    line << "lateness " << load.pending << ' ' << load.seed << ' ' << load.samples << ' '
         << load.shortest.count() << ' ' << load.longest.count();
    std::vector<double> measured = program_.ask(line.str());
    DETENT_CHECK(measured.size() == load.samples);
    return measured;
  }
  std::optional<ProcessCost> idle(const RuntimeLoad& load) override {
    std::ostringstream line;
    line << "idle " << load.pending << ' ' << load.seed;
    program_.ask_and_let_run(line.str());
    std::this_thread::sleep_for(std::chrono::milliseconds{50});  // until the runtime is idle
    const ProcessCost before = process_cost(program_.id());
    std::this_thread::sleep_for(std::chrono::duration<double>(load.seconds));
    const ProcessCost cost = process_cost(program_.id()) - before;
    program_.ask("idle_no_more");
    return cost;
  }

 private:
  static double only(const std::vector<double>& numbers) {
    DETENT_CHECK(numbers.size() == 1);
    return numbers.front();
  }

  std::string name_;
  std::string note_;
  Refreshes refreshes_;
  ChildProgram program_;
};

}  // namespace

std::unique_ptr<RuntimePeer> go_runtime() {
  const std::string program = DETENT_BENCH_GO;
  if (access(program.c_str(), X_OK) != 0) return nullptr;
  return std::make_unique<ProgramRuntime>(
      "Go", "time.AfterFunc, Stop and Reset; a goroutine a thread; a process of its own",
      Refreshes::yes, std::vector<std::string>{program});
}

std::unique_ptr<RuntimePeer> netty_runtime() {
  const std::string java = DETENT_BENCH_JAVA;
  const std::string library = DETENT_BENCH_NETTY;
  const std::string classes = DETENT_BENCH_NETTY_CLASSES;
  const std::string main_class = classes + "/NettyTimers.class";
  const bool is_built = access(main_class.c_str(), R_OK) == 0;
  if (access(java.c_str(), X_OK) != 0 || access(library.c_str(), R_OK) != 0 || !is_built) {
    return nullptr;
  }
  return std::make_unique<ProgramRuntime>(
      "Netty", "HashedWheelTimer, ticks of 1 ms, 512 slots; a process of its own", Refreshes::no,
      std::vector<std::string>{java, "-cp", classes + ":" + library, "NettyTimers"});
}

}  // namespace detent::bench
