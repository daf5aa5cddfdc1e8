#include "tests/oracle/croner.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

namespace detent::oracle {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

std::int64_t count_of(sys_seconds time) { return time.time_since_epoch().count(); }

void write_questions(std::ostream& out, const std::vector<std::string>& zones, Window zone_window,
                     const std::vector<RunsQuestion>& questions) {
  for (const std::string& zone : zones) {
    out << "zone\t" << count_of(zone_window.begin) << '\t' << count_of(zone_window.end) << '\t'
        << zone << '\n';
  }
  for (const RunsQuestion& question : questions) {
    out << "runs\t" << count_of(question.window.begin) << '\t' << count_of(question.window.end)
        << '\t' << question.most << '\t' << question.zone << '\t' << question.expression << '\n';
  }
}

/// Reads the output of a process line by line.
class Lines {
 public:
  explicit Lines(const std::string& command) : pipe_(::popen(command.c_str(), "r")) {}
  ~Lines() {
    if (pipe_ != nullptr) (void)::pclose(pipe_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  std::optional<std::string> next() {
    std::string line;
    while (pipe_ != nullptr && std::fgets(part_.data(), kPartSize, pipe_) != nullptr) {
      line += part_.data();
      if (line.back() != '\n') continue;
      line.pop_back();
      return line;
    }
    return std::nullopt;
  }

 private:
  static constexpr int kPartSize = 1 << 16;

  std::FILE* pipe_;
  std::array<char, kPartSize> part_ = {};
};

/// A temporary file that is removed with the object.
class ScratchFile {
 public:
  ScratchFile() {
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor >= 0) ::close(descriptor);
  }
  ~ScratchFile() { (void)std::remove(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/detent-oracle-XXXXXX";
};

constexpr std::string_view kError = "error ";

ZoneAnswer read_zone(std::string_view line) {
  if (line.starts_with(kError)) return {};
  ZoneAnswer answer{.is_known = true};
  std::istringstream in{std::string(line)};
  std::int64_t since = 0;
  std::int64_t offset = 0;
  char colon = 0;
  while (in >> since >> colon >> offset) {
    answer.offsets.push_back({sys_seconds{seconds{since}}, seconds{offset}});
  }
  return answer;
}

RunsAnswer read_runs(std::string_view line) {
  if (line.starts_with(kError)) return {std::string(line.substr(kError.size()))};
  RunsAnswer answer;
  std::istringstream in{std::string(line)};
  for (std::int64_t run = 0; in >> run;) answer.runs.emplace_back(seconds{run});
  return answer;
}

}  // namespace

Result<Answers> ask_croner(const std::vector<std::string>& zones, Window zone_window,
                           const std::vector<RunsQuestion>& questions) {
  const ScratchFile file;
  std::ofstream out(file.path());
  write_questions(out, zones, zone_window, questions);
  out.close();
  const std::string script = DETENT_ORACLE_FOLDER "/croner.mjs";
  Lines lines("node '" + script + "' '" + file.path() + "'");

  constexpr std::string_view kVersion = "tzdata ";
  const auto version = lines.next();
  if (!version || !version->starts_with(kVersion)) {
    return Error{
        ErrorCode::unavailable,
        "node could not run " + script +
            "; run `tools/setup full`, or `npm ci` in its folder, to install Node and croner",
        ""};
  }
  Answers answers{.tzdata = std::string(version->substr(kVersion.size()))};
  for (std::size_t i = 0; i < zones.size() + questions.size(); ++i) {
    const auto line = lines.next();
    if (!line)
      return Error{ErrorCode::unavailable, "croner.mjs ended before it answered all questions", ""};
    if (i < zones.size()) {
      answers.zones.push_back(read_zone(*line));
    } else {
      answers.runs.push_back(read_runs(*line));
    }
  }
  return answers;
}

}  // namespace detent::oracle
