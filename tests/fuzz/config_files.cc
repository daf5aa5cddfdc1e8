// Parses any text as the file of `detent serve --config`. If the text is accepted, --print-config
// must print a file with the same meaning. If it is refused, the error must name the place in the
// file.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/settings/settings.h"
#include "cli/settings/settings_file.h"
#include "detent/check.h"
#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {

namespace {

/// A file in memory that has a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("detent.toml", MFD_CLOEXEC)) {
    DETENT_CHECK(descriptor_ >= 0);
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void fill(std::string_view text) const {
    DETENT_CHECK(ftruncate(descriptor_, 0) == 0);
    const ssize_t size = pwrite(descriptor_, text.data(), text.size(), 0);
    DETENT_CHECK(size == static_cast<ssize_t>(text.size()));
  }

 private:
  const int descriptor_;
};

/// True if TOML allows the name before '=' without quotes.
bool is_bare(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

std::vector<cli::Setting> printable(const std::vector<cli::FileSetting>& in_file) {
  std::vector<cli::Setting> settings;
  for (const cli::FileSetting& one : in_file) {
    if (!is_bare(one.name)) continue;
    settings.push_back({.name = one.name, .value = one.value, .from = one.place, .kind = one.kind});
  }
  return settings;
}

/// Checks the settings for which --print-config prints a line.
void expect_same_when_printed(const std::vector<cli::FileSetting>& in_file) {
  const std::vector<cli::Setting> settings = printable(in_file);
  const std::string text = cli::to_toml(settings);
  const auto again = cli::parse_settings(text, "again");
  DETENT_CHECK(again.has_value());
  for (const cli::FileSetting& one : *again) {
    const auto same = [&one](const cli::Setting& setting) {
      return setting.name == one.name && setting.value == one.value && setting.kind == one.kind;
    };
    DETENT_CHECK(std::any_of(settings.begin(), settings.end(), same));
  }
  std::size_t lines = 0;  // without comments
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
    if (text[begin] != '#') ++lines;
  }
  DETENT_CHECK(again->size() == lines);
}

cli::Invocation read_command_line(const MemoryFile& file) {
  const std::string path = file.path();
  const std::array<const char*, 4> words{"detent", "serve", "--config", path.c_str()};
  return cli::parse_arguments(static_cast<int>(words.size()), words.data());
}

/// True if a secret is not shown. Its printed line is read as the default, so the options can
/// differ.
bool hides_any(std::string_view printed) {
  return printed.find(": not shown") != std::string_view::npos;
}

}  // namespace

void config_files(std::string_view input) {
  const auto in_file = cli::parse_settings(input, "detent.toml");
  if (!in_file) {
    DETENT_CHECK(in_file.error().message.starts_with("detent.toml:"));
    return;
  }
  expect_same_when_printed(*in_file);
  static const MemoryFile file;
  file.fill(input);
  const cli::Invocation invocation = read_command_line(file);
  const auto* const call = std::get_if<cli::ServeCall>(&invocation);
  if (call == nullptr) {
    const auto& told = std::get<cli::NothingToRun>(invocation);
    DETENT_CHECK(told.exit_code == cli::ExitCode::usage);
    DETENT_CHECK(told.text.find(file.path()) != std::string::npos);
    return;
  }
  const std::string printed = cli::to_toml(call->settings);
  file.fill(printed);
  const cli::Invocation again = read_command_line(file);
  const auto* const same = std::get_if<cli::ServeCall>(&again);
  DETENT_CHECK(same != nullptr);
  DETENT_CHECK(hides_any(printed) || same->options == call->options);
}

}  // namespace detent::fuzz
