#include "store/postgres/testing/private_cluster.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "detent/check.h"

namespace detent {

namespace {

namespace fs = std::filesystem;

struct Account {
  uid_t user = 0;
  gid_t group = 0;
};

Account server_account() {
  if (::geteuid() != 0) return {::geteuid(), ::getegid()};
  const passwd* const entry = ::getpwnam("postgres");
  // If this fails, PostgreSQL is not installed: run tools/setup full.
  DETENT_CHECK(entry != nullptr);
  return {entry->pw_uid, entry->pw_gid};
}

std::string make_folder() {
  std::string folder = (fs::temp_directory_path() / "detent-pg-XXXXXX").string();
  DETENT_CHECK(::mkdtemp(folder.data()) != nullptr);
  DETENT_CHECK(::chown(folder.c_str(), server_account().user, server_account().group) == 0);
  return folder;
}

/// The path of a program of the newest installed PostgreSQL.
std::string postgres_program(const std::string& name) {
  std::string found;
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const std::string program = (version.path() / "bin" / name).string();
    if (fs::exists(program) && program > found) found = program;
  }
  DETENT_CHECK(!found.empty());  // if this fails, run tools/setup full
  return found;
}

[[noreturn]] void become(std::vector<std::string> command, int output) {
  const Account account = server_account();
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (account.user != ::geteuid() &&
      (::setgroups(0, nullptr) != 0 || ::setgid(account.group) != 0 ||
       ::setuid(account.user) != 0)) {
    ::_exit(126);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  // A shell ignores these signals for its background processes. A pgbouncer would inherit this.
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGQUIT, SIG_DFL);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::chdir("/");
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

struct Spawned {
  pid_t process = -1;
  int output = -1;  // ends after the process and all its children have ended
};

Spawned spawn(const std::vector<std::string>& command) {
  std::array<int, 2> pipe{};
  DETENT_CHECK(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  const pid_t process = ::fork();
  DETENT_CHECK(process >= 0);
  if (process == 0) become(command, pipe[1]);
  ::close(pipe[1]);
  return {process, pipe[0]};
}

/// The next part of the output; empty at the end.
std::string read_some(int output) {
  std::array<char, 4096> bytes{};
  const ssize_t size = ::read(output, bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

void run(const std::vector<std::string>& command) {
  const Spawned spawned = spawn(command);
  std::string said;
  for (std::string part = read_some(spawned.output); !part.empty();
       part = read_some(spawned.output)) {
    said += part;
  }
  int status = 0;
  ::waitpid(spawned.process, &status, 0);
  ::close(spawned.output);
  if (status != 0) std::fprintf(stderr, "%s\n", said.c_str());
  DETENT_CHECK(status == 0);
}

}  // namespace

ServerChild::~ServerChild() { end(SIGKILL); }

void ServerChild::start(const std::vector<std::string>& command, const std::string& ready) {
  const Spawned spawned = spawn(command);
  process_ = spawned.process;
  output_ = spawned.output;
  std::string said;
  while (said.find(ready) == std::string::npos) {
    const std::string part = read_some(output_);
    if (part.empty()) std::fprintf(stderr, "%s\n", said.c_str());
    DETENT_CHECK(!part.empty());
    said += part;
  }
  reader_ = Thread([output = output_] {
    while (!read_some(output).empty()) {
    }
  });
}

void ServerChild::end(int signal) {
  if (!is_running()) return;
  ::kill(process_, signal);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
  reader_.join();
  ::close(output_);
}

PrivateCluster::PrivateCluster(Fsync fsync) : folder_(make_folder()), fsync_(fsync) {
  run({postgres_program("initdb"), "-D", folder_ + "/data", "-U", "postgres", "-A", "trust", "-N",
       "--no-locale", "-E", "UTF8"});
  start();
}

PrivateCluster::~PrivateCluster() {
  server_.end(SIGQUIT);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void PrivateCluster::start() {
  const std::string fsync = fsync_ == Fsync::on ? "fsync=on" : "fsync=off";
  server_.start({postgres_program("postgres"), "-D", folder_ + "/data", "-k", folder_, "-c",
                 "listen_addresses=", "-c", fsync, "-c", "shared_buffers=32MB", "-c",
                 "max_connections=30", "-c", "log_min_error_statement=panic"},
                "ready to accept connections");
}

void PrivateCluster::stop() { server_.end(SIGINT); }

void PrivateCluster::kill() { server_.end(SIGKILL); }

std::string PrivateCluster::new_database() {
  const auto url_of = [this](const std::string& name) {
    return "postgres://postgres@/" + name + "?host=" + folder_;
  };
  const std::string name = "test" + std::to_string(++databases_);
  execute(url_of("postgres"), "create database " + name + " template template0");
  return url_of(name);
}

PrivateBouncer::PrivateBouncer(const PrivateCluster& cluster)
    : folder_(make_folder()), cluster_(cluster) {
  std::ofstream(folder_ + "/users") << "\"postgres\" \"\"\n";
  std::ofstream(folder_ + "/ini") << "[databases]\n* = host=" << cluster.folder()
                                  << "\n[pgbouncer]\n"
                                  << "listen_addr =\nunix_socket_dir = " << folder_ << "\n"
                                  << "pool_mode = transaction\ndefault_pool_size = 2\n"
                                  << "auth_type = trust\nauth_file = " << folder_ << "/users\n";
  bouncer_.start({"/usr/sbin/pgbouncer", folder_ + "/ini"}, "process up");
}

PrivateBouncer::~PrivateBouncer() {
  bouncer_.end(SIGQUIT);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string PrivateBouncer::through(const std::string& url) const {
  return url.substr(0, url.find('?')) + "?host=" + folder_ + "&port=6432";
}

Rows execute(const std::string& url, const std::string& sql) {
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  const std::unique_ptr<PGconn, Finish> connection(PQconnectdb(url.c_str()));
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  PGresult* const result = PQexec(connection.get(), sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    std::fprintf(stderr, "%s: %s\n", sql.c_str(), PQerrorMessage(connection.get()));
  }
  DETENT_CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
  return Rows(result);
}

std::string value_of(const std::string& url, const std::string& sql) {
  const Rows rows = execute(url, sql);
  return rows.empty() ? "" : std::string(rows.bytes(0, 0));
}

void refuse_unfenced_changes(const std::string& url) {
  std::string sql = R"(
    create or replace function detent.refuse_unfenced() returns trigger language plpgsql as $$
    begin
      if not exists (select from detent.shard where shard = coalesce(new.shard, old.shard)
                     and xmin = pg_current_xact_id()::xid) then
        raise 'an unfenced % of %', tg_op, tg_table_name;
      end if;
      return null;
    end $$;)";
  for (const std::string table :
       {"task", "queue", "schedule", "task_key", "due_count", "quarantine"}) {
    sql += "create or replace trigger refuse_unfenced after insert or update or delete on detent." +
           table + " for each row execute function detent.refuse_unfenced();";
  }
  execute(url, sql);
}

PrivateCluster& shared_cluster() {
  static PrivateCluster cluster;
  return cluster;
}

}  // namespace detent
