// beanstalkd, and Detent with the same protocol: puts, reserves and deletes are pipelined. Delays
// are whole seconds, so they are rounded up. The due time is the time of the put plus the delay.
#include <filesystem>
#include <string>
#include <utility>

#include "bench/server/server_peer.h"
#include "bench/server/server_socket.h"

namespace detent::bench {
namespace {

class BeanstalkClient final : public ServerClient {
 public:
  explicit BeanstalkClient(std::uint16_t port) : socket_(port) { count(); }

  int descriptor() const override { return socket_.descriptor(); }

  void send_put(std::span<const std::int64_t> delays_ms) override {
    const std::int64_t now = wall_us();
    text_.clear();
    for (const std::int64_t delay : delays_ms) {
      const std::int64_t seconds = (delay + 999) / 1'000;
      text_ += "put 1024 " + std::to_string(seconds) + " 120 100\r\n";
      append_payload(text_, now + seconds * 1'000'000);
      text_ += "\r\n";
    }
    put_count_ = delays_ms.size();
    socket_.send(text_);
  }
  std::size_t receive_put() override { return count_answers(put_count_, "INSERTED"); }

  TakenTasks take(std::size_t max, int wait_ms) override {
    const std::size_t asked = wait_ms == 0 ? max : 1;  // one that waits would hold up the others
    text_.clear();
    for (std::size_t i = 0; i < asked; ++i) {
      text_ += "reserve-with-timeout " + std::to_string((wait_ms + 999) / 1'000) + "\r\n";
    }
    socket_.send(text_);
    TakenTasks taken;
    for (std::size_t i = 0; i < asked; ++i) {
      std::string_view line = socket_.read_line();
      if (line == "TIMED_OUT") continue;
      if (!line.starts_with("RESERVED ")) throw ServerError(std::string(line));
      line.remove_prefix(9);
      TakenTask task{std::string(line.substr(0, line.find(' '))), 0};
      task.due_us = due_of_payload(socket_.read(102));  // and its line end
      taken.tasks.push_back(std::move(task));
    }
    taken.received_us = wall_us();
    return taken;
  }

  std::size_t finish(const std::vector<TakenTask>& tasks) override {
    text_.clear();
    for (const TakenTask& task : tasks) text_ += "delete " + task.handle + "\r\n";
    socket_.send(text_);
    return count_answers(tasks.size(), "DELETED");
  }

  std::uint64_t count() override {
    socket_.send("stats\r\n");
    const auto size = static_cast<std::size_t>(number_after(socket_.read_line(), "OK "));
    const std::string_view stats = socket_.read(size + 2);
    std::int64_t sum = 0;
    for (const char* state : {"-ready:", "-reserved:", "-delayed:", "-buried:"}) {
      sum += number_after(stats, "current-jobs" + std::string(state));
    }
    return static_cast<std::uint64_t>(sum);
  }

 private:
  std::size_t count_answers(std::size_t count, std::string_view wanted) {
    std::size_t got = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (socket_.read_line().starts_with(wanted)) ++got;
    }
    return got;
  }

  Socket socket_;
  std::string text_;
  std::size_t put_count_ = 0;
};

class BeanstalkServer final : public ServerPeer {
 public:
  using ServerPeer::ServerPeer;

  std::vector<std::string> command(const ServerPlace& place, Loading loading) const override {
    std::vector<std::string> command{find_program("beanstalkd").string(), "-l", "127.0.0.1", "-p",
                                     std::to_string(place.port)};
    if (traits().promise == Promise::memory) return command;
    const char* const sync = loading == Loading::unsynced ? "-F" : "-f0";
    command.insert(command.end(), {"-b", place.folder.string(), sync});
    return command;
  }
  std::unique_ptr<ServerClient> connect(std::uint16_t port) override {
    return std::make_unique<BeanstalkClient>(port);
  }
};

class DetentByBeanstalk final : public ServerPeer {
 public:
  DetentByBeanstalk(std::filesystem::path program, PeerTraits traits)
      : ServerPeer(std::move(traits)), program_(std::move(program)) {}

  std::vector<std::string> command(const ServerPlace& place, Loading /*loading*/) const override {
    return {
        program_.string(), "serve",       "--data",      (place.folder / "data").string(),
        "--http",          "127.0.0.1:0", "--beanstalk", "127.0.0.1:" + std::to_string(place.port),
        "--log-level",     "warning"};
  }
  std::unique_ptr<ServerClient> connect(std::uint16_t port) override {
    return std::make_unique<BeanstalkClient>(port);
  }

 private:
  const std::filesystem::path program_;
};

}  // namespace

std::unique_ptr<ServerPeer> detent_by_beanstalk(const std::filesystem::path& program) {
  PeerTraits traits{.name = "detent beanstalk",
                    .form = "500 puts pipelined; waiting reserve",
                    .promise = Promise::synced,
                    .batch = 500,
                    .can = {.drains = false, .waits = false, .fires = false, .survives = false},
                    .missing = {}};
  if (!std::filesystem::exists(program)) traits.missing = "no program " + program.string();
  return std::make_unique<DetentByBeanstalk>(program, std::move(traits));
}

std::unique_ptr<ServerPeer> beanstalkd_server(Promise promise) {
  const bool is_memory = promise == Promise::memory;
  PeerTraits traits{.name = is_memory ? "beanstalkd" : "beanstalkd -f0",
                    .form = "500 puts pipelined; waiting reserve",
                    .promise = promise,
                    .batch = 500,
                    .can = {.drains = is_memory, .fires = is_memory, .survives = !is_memory},
                    .missing = {}};
  if (find_program("beanstalkd").empty()) traits.missing = "beanstalkd is not installed";
  return std::make_unique<BeanstalkServer>(std::move(traits));
}

}  // namespace detent::bench
