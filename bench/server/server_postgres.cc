// PostgreSQL as a task queue: a table with an index by due time. One prepared statement inserts the
// tasks of two arrays. Workers take tasks by DELETE … FOR UPDATE SKIP LOCKED, and keep the
// transaction open while they work. COMMIT finishes the tasks; if a worker dies, its tasks return.
// A client cannot wait for a time, so workers poll every millisecond.
//
// This file implements protocol version 3 without a library:
// https://www.postgresql.org/docs/15/protocol-message-formats.html
#include <unistd.h>

#include <charconv>
#include <string>

#include "bench/server/server_peer.h"
#include "bench/server/server_socket.h"

namespace detent::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema =
    "CREATE TABLE IF NOT EXISTS tasks "
    "(id bigserial PRIMARY KEY, due bigint NOT NULL, payload text NOT NULL);"
    "CREATE INDEX IF NOT EXISTS tasks_due ON tasks (due)";
constexpr std::string_view kPut =
    "INSERT INTO tasks (due, payload) SELECT * FROM unnest($1::bigint[], $2::text[])";
constexpr std::string_view kTake =
    "DELETE FROM tasks WHERE id = ANY (ARRAY(SELECT id FROM tasks WHERE due <= $1::bigint "
    "ORDER BY due LIMIT $2::int FOR UPDATE SKIP LOCKED)) RETURNING due";

fs::path postgres_program(const std::string& name) {
  std::vector<fs::path> folders;  // Debian keeps the server's programs out of PATH
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    folders.push_back(version.path() / "bin");
  }
  return find_program(name, folders);
}

std::string big_endian(std::size_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> shift & 0xFF);
  }
  return text;
}

std::size_t from_big_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

/// `text` with a 0 byte at the end.
std::string terminated(std::string_view text) { return std::string(text) + '\0'; }

/// The contents of the answers up to the next ReadyForQuery.
struct PostgresAnswer {
  std::size_t rows_changed = 0;           // by the last command with a row count
  std::vector<std::string> first_column;  // of each row
};

class PostgresClient final : public ServerClient {
 public:
  explicit PostgresClient(std::uint16_t port) : socket_(port) {
    const std::string parameters = big_endian(196'608, 4) + terminated("user") +
                                   terminated("bench") + terminated("database") +
                                   terminated("postgres") + '\0';
    socket_.send(big_endian(parameters.size() + 4, 4) + parameters);
    receive();
    query(kSchema);
    add_message('P', terminated("put") + terminated(kPut) + big_endian(0, 2));
    add_message('P', terminated("take") + terminated(kTake) + big_endian(0, 2));
    sync();
    receive();
  }

  int descriptor() const override { return socket_.descriptor(); }

  void send_put(std::span<const std::int64_t> delays_ms) override {
    const std::int64_t now = wall_us();
    std::string due = "{";
    std::string payloads = "{";
    for (const std::int64_t delay : delays_ms) {
      due += std::to_string(now + delay * 1'000) + ',';
      append_payload(payloads, now + delay * 1'000);
      payloads += ',';
    }
    due.back() = '}';
    payloads.back() = '}';
    execute("put", due, payloads);
    sync();
  }
  std::size_t receive_put() override { return receive().rows_changed; }

  TakenTasks take(std::size_t max, int wait_ms) override {
    return poll_until_due(wait_ms, [this, max] { return take_what_is_due(max); });
  }

  std::size_t finish(const std::vector<TakenTask>& tasks) override {
    query("COMMIT");
    return tasks.size();
  }

  std::uint64_t count() override {
    return std::stoull(query("SELECT count(*) FROM tasks").first_column.at(0));
  }

 private:
  TakenTasks take_what_is_due(std::size_t max) {
    add_message('Q', terminated("BEGIN"));
    execute("take", std::to_string(wall_us()), std::to_string(max));
    sync();
    receive();
    const PostgresAnswer answer = receive();
    TakenTasks taken{.received_us = wall_us(), .tasks = {}};
    for (const std::string& due : answer.first_column) {
      taken.tasks.push_back({std::string(), due_of_payload(due)});
    }
    if (taken.tasks.empty()) query("COMMIT");
    return taken;
  }

  void add_message(char kind, std::string_view body) {
    text_ += kind;
    text_ += big_endian(body.size() + 4, 4);
    text_ += body;
  }
  void execute(std::string_view statement, std::string_view first, std::string_view second) {
    std::string bind = terminated("") + terminated(statement) + big_endian(0, 2) + big_endian(2, 2);
    bind += big_endian(first.size(), 4);
    bind += first;
    bind += big_endian(second.size(), 4);
    bind += second;
    bind += big_endian(0, 2);
    add_message('B', bind);
    add_message('E', terminated("") + big_endian(0, 4));
  }
  void sync() {
    add_message('S', {});
    flush();
  }
  void flush() {
    socket_.send(text_);
    text_.clear();
  }
  PostgresAnswer query(std::string_view sql) {
    add_message('Q', terminated(sql));
    flush();
    return receive();
  }

  PostgresAnswer receive() {
    PostgresAnswer answer;
    std::string error;
    for (;;) {
      const char kind = socket_.read(1)[0];
      const std::size_t size = from_big_endian(socket_.read(4)) - 4;
      const std::string_view body = socket_.read(size);
      if (kind == 'E') error = std::string(body);
      if (kind == 'D') {  // column count, then each column's size and bytes
        answer.first_column.emplace_back(body.substr(6, from_big_endian(body.substr(2, 4))));
      }
      if (kind == 'C') {  // "INSERT 0 1000", "DELETE 7"
        const std::string_view last = body.substr(body.rfind(' ') + 1);
        std::from_chars(last.data(), last.data() + last.size(), answer.rows_changed);
      }
      const bool refuses_connection = kind == 'E' && error.find("FATAL") != std::string::npos;
      if (kind != 'Z' && !refuses_connection) continue;
      for (char& byte : error) byte = byte == '\0' ? ' ' : byte;
      if (!error.empty()) throw ServerError(error);
      return answer;
    }
  }

  Socket socket_;
  std::string text_;
};

class PostgresServer final : public ServerPeer {
 public:
  using ServerPeer::ServerPeer;

  /// Runs initdb once, and later copies its result.
  void prepare(const ServerPlace& place) override {
    if (made_.empty()) {
      made_ = place.folder.parent_path() / "postgres-made";
      fs::create_directory(made_);
      chown_all(made_);
      ServerProcess initdb(
          {.command = {postgres_program("initdb").string(), "-D", (made_ / "data").string(), "-U",
                       "bench", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"},
           .log = made_ / "log",
           .account = account()});
      initdb.wait_until_done();
    }
    fs::copy(made_ / "data", place.folder / "data", fs::copy_options::recursive);
    chown_all(place.folder);
    fs::permissions(place.folder / "data", fs::perms::owner_all);
  }

  std::vector<std::string> command(const ServerPlace& place, Loading /*loading*/) const override {
    return {postgres_program("postgres").string(),
            "-D",
            (place.folder / "data").string(),
            "-p",
            std::to_string(place.port),
            "-k",
            place.folder.string(),
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "shared_buffers=512MB",
            "-c",
            "max_wal_size=4GB",
            "-c",
            "synchronous_commit=on"};
  }
  Account account() const override { return unprivileged_account(); }

  std::unique_ptr<ServerClient> connect(std::uint16_t port) override {
    return std::make_unique<PostgresClient>(port);
  }

 private:
  void chown_all(const fs::path& folder) const {
    const auto give = [this](const fs::path& path) {
      if (::lchown(path.c_str(), account().user, account().group) != 0) {
        throw ServerError("chown " + path.string());
      }
    };
    give(folder);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) give(entry.path());
  }

  fs::path made_;
};

}  // namespace

std::unique_ptr<ServerPeer> postgres_server() {
  PeerTraits traits{.name = "PostgreSQL",
                    .form = "INSERT of 1 000 rows; SKIP LOCKED polls every 1 ms",
                    .promise = Promise::synced,
                    .batch = 1'000,
                    .can = {.counts_memory = false},
                    .missing = {}};
  if (postgres_program("postgres").empty()) traits.missing = "postgresql is not installed";
  return std::make_unique<PostgresServer>(std::move(traits));
}

}  // namespace detent::bench
