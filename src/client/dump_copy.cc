#include "client/dump_copy.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "client/client_impl.h"
#include "protocol/json/dump_codec.h"

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

/// A page of a dump: the lines of queues (on the first page), tasks and schedules.
struct DumpPage {
  std::string lines;  // each with its line feed
  json::LineCounts counts = {};
  std::uint64_t external = 0;  // last page only: tasks that an external scheduler keeps
  std::optional<json::DumpNext> next = {};  // no value: this was the last page
};

Error bad_page(const std::string& why) {
  return {ErrorCode::internal, "read the server's dump: " + why, ""};
}

/// Splits a page into its last line and the other lines, and counts the other lines. Each line must
/// be complete.
Result<DumpPage> read_dump_page(std::string_view body, const json::DumpNext& from) {
  constexpr const char* kOtherCounts = "the lines of the page do not match its counts";
  if (!body.ends_with('\n')) return bad_page("the page is truncated");
  const std::size_t last = body.substr(0, body.size() - 1).rfind('\n') + 1;
  DumpPage page{.lines = std::string(body.substr(0, last))};
  for (std::string_view rest = page.lines; !rest.empty();) {
    const std::size_t size = rest.find('\n') + 1;
    const auto kind = json::kind_of_dump_line(rest.substr(0, size));
    if (!kind) return bad_page(kind.error().message);
    json::count_line(page.counts, *kind);
    rest.remove_prefix(size);
  }
  Result<json::DumpLine> end = json::parse_dump_line(body.substr(last));
  if (!end) return bad_page(end.error().message);
  if (auto* next = std::get_if<json::DumpNext>(&*end)) {
    const json::LineCounts counts = std::exchange(next->counts, {});
    if (counts != page.counts) return bad_page(kOtherCounts);
    if (next->after <= from.after && next->schedule <= from.schedule) {
      return bad_page("the next page does not begin after this page");
    }
    page.next = std::move(*next);
    return page;
  }
  const auto* whole = std::get_if<json::DumpEnd>(&*end);
  if (whole == nullptr || whole->counts != page.counts) {
    return bad_page(kOtherCounts);
  }
  page.external = whole->external;
  return page;
}

/// Returns the page that starts at `from`. Errors: `internal` for an incomplete page.
Result<DumpPage> dump_page(Client& client, const json::DumpNext& from) {
  std::string query;
  if (from.after != TaskId{}) query += "?after=" + to_string(from.after);
  if (!from.schedule.empty()) {
    query += (query.empty() ? "?" : "&");
    query += "after_schedule=" + percent_encode(from.schedule);
  }
  const auto read = [&from](std::string_view body) { return read_dump_page(body, from); };
  return to_result(ClientInternals::of(client).call(get_call("/v1/dump" + query), read));
}

/// Restores up to kMaxBatchTasks lines of a dump, each with its line feed.
Result<json::RestoreAnswer> restore_lines(Client& client, std::string lines) {
  ServerCall call = post_call("/v1/restore", std::move(lines));
  call.request.headers = {{"content-type", std::string(json::kDumpContentType)}};
  return to_result(ClientInternals::of(client).call(call, json::parse_restored));
}

}  // namespace

Result<DumpCounts> write_dump(Client& client, std::ostream& out,
                              const std::function<void(std::uint64_t)>& at) {
  DumpCounts counts;
  for (std::optional<json::DumpNext> from = json::DumpNext{}; from;) {
    ASSIGN_OR_RETURN(DumpPage page, dump_page(client, *from));
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
  return Error{ErrorCode::data_loss,
               "'" + file + "' is not a dump: each line of a dump is a JSON object", ""};
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
  ASSIGN_OR_RETURN(const json::RestoreAnswer answer, restore_lines(client_, std::move(part_)));
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
