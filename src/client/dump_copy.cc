#include "client/dump_copy.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "protocol/json/dump_parser.h"
#include "protocol/json/dump_renderer.h"

namespace detent {

namespace {

/// The most that one call restores. This is far below the limit of the server, so that other
/// requests do not wait long.
constexpr std::size_t kPartLines = 1'000;
constexpr std::size_t kPartBytes = std::size_t{4} << 20;

constexpr std::string_view kBlank = " \t\r";

Error stream_error(const char* verb) {
  return {ErrorCode::unavailable,
          std::string(verb) + " the dump: " + std::generic_category().message(errno), ""};
}

/// The command that decompresses a file with this beginning; "" for other files.
std::string_view unpacking_command(std::string_view beginning) {
  if (beginning.starts_with("\x1F\x8B")) return "gzip -dc";
  if (beginning.starts_with("\x28\xB5\x2F\xFD")) return "zstd -dc";
  if (beginning.starts_with("\xFD\x37zXZ")) return "xz -dc";
  return beginning.starts_with("BZh") ? "bzip2 -dc" : "";
}

Result<void> expect_unpacked(std::string_view beginning, const std::string& file) {
  const std::string command(unpacking_command(beginning));
  if (command.empty()) return ok();
  return Error{ErrorCode::data_loss,
               file + " is compressed; restore it with: " + command + " FILE | detent restore -",
               ""};
}

}  // namespace

Result<DumpCounts> write_dump(ApiClient& client, std::ostream& out,
                              const std::function<void(std::uint64_t)>& at) {
  DumpCounts counts;
  for (std::optional<ApiClient::DumpCursor> from = ApiClient::DumpCursor{}; from;) {
    ASSIGN_OR_RETURN(ApiClient::DumpPage page, client.dump(*from));
    counts.lines += page.counts;
    counts.external += page.external;
    if (!(out << page.lines)) return stream_error("write");
    at(counts.lines.tasks);
    from = std::move(page.next);
  }
  std::string end;
  json::append_dump_line(end, json::DumpEnd{counts.lines, counts.external});
  if (!(out << end << std::flush)) return stream_error("write");
  return counts;
}

Result<bool> has_dump_end(std::istream& in) {
  constexpr std::streamoff kLongestEnd = 256;
  in.seekg(0, std::ios::end);
  const std::streamoff size = in.tellg();
  if (!in) return stream_error("read");
  in.seekg(std::max<std::streamoff>(0, size - kLongestEnd));
  std::string tail(static_cast<std::size_t>(std::min(size, kLongestEnd)), '\0');
  in.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  if (!in.seekg(0)) return stream_error("read");
  tail.erase(tail.find_last_not_of(" \t\r\n") + 1);
  const std::string_view last = std::string_view(tail).substr(tail.rfind('\n') + 1);
  const auto kind = json::kind_of_dump_line(last);
  if (!kind || *kind != json::DumpLineKind::end) return false;
  const auto end = json::parse_dump_line(last);
  if (end) return true;
  return Error{ErrorCode::data_loss,
               "the dump is damaged: its end line does not have all counts (" +
                   end.error().message + "); --partial restores its lines",
               ""};
}

Result<void> expect_dump(std::string_view beginning, const std::string& file) {
  TRY(expect_unpacked(beginning, file));
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || beginning[first] == '{') return ok();
  return Error{ErrorCode::data_loss, file + " is not a dump: each line of a dump is a JSON object",
               ""};
}

Result<void> DumpRestore::run(std::istream& in) {
  std::vector<char> line(json::kMaxDumpLineBytes);
  for (std::uint64_t number = 1; in.peek() != std::istream::traits_type::eof(); ++number) {
    in.getline(line.data(), static_cast<std::streamsize>(line.size()));
    if (in.bad()) break;
    // Checked in the first line only, so that the error comes once.
    if (number == 1) TRY(expect_unpacked({line.data(), std::size_t(in.gcount())}, "the input"));
    if (in.fail()) {
      const std::string what =
          "line " + std::to_string(number) + " is longer than a line of a dump can be";
      return Error{ErrorCode::too_large, what, ""};
    }
    const std::size_t size = static_cast<std::size_t>(in.gcount()) - (in.eof() ? 0 : 1);
    TRY(take({line.data(), size}, number));
  }
  if (in.bad()) return stream_error("read");
  TRY(send());
  for (const auto& [number, schedule] : schedules_) TRY(add(schedule, number));
  return send();
}

Result<void> DumpRestore::take(std::string_view line, std::uint64_t number) {
  if (line.find_first_not_of(kBlank) == std::string_view::npos) return ok();
  const auto kind = json::kind_of_dump_line(line);
  if (!kind) {
    refuse(number, kind.error());
    return ok();
  }
  report_.is_dump = true;
  if (report_.has_end) {
    refuse(number, {ErrorCode::invalid_argument, "the line comes after the end of the dump", ""});
    return ok();
  }
  json::count_line(counts_, *kind);
  switch (*kind) {
    case json::DumpLineKind::task:
    case json::DumpLineKind::queue:
      return add(line, number);
    case json::DumpLineKind::damaged:
      ++report_.damaged;
      return ok();
    case json::DumpLineKind::schedule:
      schedules_.emplace_back(number, line);
      return ok();
    case json::DumpLineKind::next:  // the input consists of unchanged pages of the server
      take_counts(line);
      return ok();
    case json::DumpLineKind::end:
      take_counts(line);
      report_.has_end = true;
      report_.is_count_right = are_pages_whole_;
      return ok();
  }
  return ok();
}

void DumpRestore::take_counts(std::string_view line) {
  const json::LineCounts counted = std::exchange(counts_, {});
  const Result<json::DumpLine> end = json::parse_dump_line(line);
  if (!end) report_.is_uncounted = true;
  const auto* const next = end ? std::get_if<json::DumpNext>(&*end) : nullptr;
  const auto* const last = end ? std::get_if<json::DumpEnd>(&*end) : nullptr;
  const bool is_whole =
      (next != nullptr && next->counts == counted) || (last != nullptr && last->counts == counted);
  are_pages_whole_ = are_pages_whole_ && is_whole;
}

void DumpRestore::refuse(std::uint64_t number, const Error& error) {
  ++report_.refused;
  events_.on_refused(number, error);
}

Result<void> DumpRestore::add(std::string_view line, std::uint64_t number) {
  if (part_.size() + line.size() >= kPartBytes || numbers_.size() == kPartLines) TRY(send());
  part_.append(line).push_back('\n');
  numbers_.push_back(number);
  return ok();
}

Result<void> DumpRestore::send() {
  if (numbers_.empty()) return ok();
  ASSIGN_OR_RETURN(const json::RestoreAnswer answer, client_.restore(std::move(part_)));
  for (const auto& [line, error] : answer.errors) {
    if (line > numbers_.size()) {
      return Error{ErrorCode::internal, "the server's answer names a line that was not sent", ""};
    }
    refuse(numbers_[line - 1], error);
  }
  report_.restored += answer.restored;
  report_.there += answer.there;
  report_.queues += answer.queues;
  report_.schedules += answer.schedules;
  report_.schedules_there += answer.schedules_there;
  report_.through_line = std::max(report_.through_line, numbers_.back());
  part_.clear();
  numbers_.clear();
  events_.on_part();
  return ok();
}

}  // namespace detent
