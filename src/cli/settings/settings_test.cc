// Tests the sources of the settings of `detent serve`, for every option.
#include "cli/settings/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "cli/arguments/arguments.h"
#include "cli/settings/settings_file.h"

namespace detent::cli {
namespace {

/// Three values for each setting. None of them is the default. A new option needs a line here.
const std::map<std::string, std::vector<std::string>>& values_of_every_setting() {
  static const std::map<std::string, std::vector<std::string>> values{
      {"data", {"a", "b/c", "/d e"}},
      {"store", {"postgres://a/b", "postgresql://c/d", "postgres://e@f:1/g"}},
      {"http", {"127.0.0.1:1", "[::1]:2", "127.0.0.1:0"}},
      {"cors-origin", {"*", "https://a.example", "http://b.example:8080"}},
      {"beanstalk", {"off", "127.0.0.1:2", "[::1]:3"}},
      {"beanstalk-public", {"true", "true", "true"}},
      {"auth", {"a", "b/c", "/d e"}},
      {"tls-cert", {"a", "b/c", "/d e"}},
      {"tls-key", {"a", "b/c", "/d e"}},
      {"host-name", {"a.example", "b.example,c", "d-e"}},
      {"sync", {"interval=1ms", "interval=2ms", "interval=3ms"}},
      {"window", {"1m", "2m", "PT3M"}},
      {"memory", {"64M", "65M", "1G"}},
      {"min-free-disk", {"0", "1M", "2G"}},
      {"external", {"redis://127.0.0.1:1", "redis://127.0.0.1:2", "http://127.0.0.1:3"}},
      {"external-after", {"1h", "2h", "3h"}},
      {"webhook-allow", {"127.0.0.0/8", "10.0.0.0/8,::1", "192.0.2.1"}},
      {"webhook-keys", {"a", "b/c", "/d e"}},
      {"sinks", {"a", "b/c", "/d e"}},
      {"node", {"a", "b.c", "d-e_1"}},
      {"node-address", {"a:1", "b.c:2", "127.0.0.1:3"}},
      {"node-lease", {"1s", "2s", "PT3M"}},
      {"node-ca", {"a", "b/c", "/d e"}},
      {"shards", {"1", "2", "256"}},
      {"alert-webhook", {"http://a/b", "https://c:1/", "http://127.0.0.1:2/"}},
      {"alert-pending", {"0", "1", "1000000"}},
      {"alert-dead", {"0", "1", "1000000"}},
      {"alert-lateness", {"1s", "1500ms", "PT2S"}},
      {"otlp-endpoint", {"http://a:1", "https://b", "http://c/d"}},
      {"otlp-ratio", {"0", "0.5", "0.25"}},
      {"log-format", {"json", "text", "json"}},
      {"log-level", {"debug", "warning", "error"}},
  };
  return values;
}

Invocation parse(const std::vector<std::string>& flags) {
  std::vector<const char*> words{"detent", "serve"};
  for (const std::string& flag : flags) words.push_back(flag.c_str());
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

ServeCall call_of(const std::vector<std::string>& flags) {
  Invocation invocation = parse(flags);
  if (const auto* nothing = std::get_if<NothingToRun>(&invocation)) {
    ADD_FAILURE() << nothing->text;
    return {};
  }
  return std::get<ServeCall>(std::move(invocation));
}

/// The text that the program prints instead of serving.
std::string told(const std::vector<std::string>& flags, ExitCode exit_code) {
  const Invocation invocation = parse(flags);
  const auto* nothing = std::get_if<NothingToRun>(&invocation);
  if (nothing == nullptr) {
    ADD_FAILURE() << "accepted";
    return {};
  }
  EXPECT_EQ(nothing->exit_code, exit_code);
  return nothing->text;
}

const Setting& setting_of(const ServeCall& call, const std::string& name) {
  for (const Setting& setting : call.settings) {
    if (setting.name == name) return setting;
  }
  static const Setting none;
  ADD_FAILURE() << "there is no " << name;
  return none;
}

/// Sets DETENT_… variables for one test.
class Variables {
 public:
  ~Variables() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    names_.push_back(name);
    setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::string> names_;
};

std::string variable_named(std::string name) {
  for (char& letter : name) letter = letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  return "DETENT_" + name;
}

/// A temporary folder for one test.
class OwnFolder {
 public:
  OwnFolder() { std::filesystem::create_directories(path_); }
  ~OwnFolder() { std::filesystem::remove_all(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  std::string path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("detent-settings-" + std::to_string(::getpid()));
};

class Settings : public ::testing::Test {
 protected:
  /// Writes a file of settings and returns its path.
  std::string file(const std::string& text) const {
    std::ofstream(folder_ / "detent.toml", std::ios::binary) << text;
    return folder_ / "detent.toml";
  }

  /// The error for a file of settings, without the folder in its path.
  std::string told_of(const std::string& text) const {
    std::string complaint = told({"--config", file(text)}, ExitCode::usage);
    const std::string folder = folder_.path() + "/";
    if (const std::size_t at = complaint.find(folder); at != std::string::npos) {
      complaint.erase(at, folder.size());
    }
    return complaint;
  }

  Variables variables_;
  OwnFolder folder_;
};

std::string assignment(const Setting& setting, const std::string& value) {
  const char* quote = setting.kind == SettingKind::text ? "\"" : "";
  return setting.name + " = " + quote + value + quote + "\n";
}

TEST_F(Settings, EveryOptionComesFromFlagElseEnvironmentElseFileElseDefault) {
  const ServeCall defaults = call_of({});
  ASSERT_EQ(defaults.settings.size(), values_of_every_setting().size());
  for (const Setting& setting : defaults.settings) {
    SCOPED_TRACE(setting.name);
    EXPECT_EQ(setting.from, "default");
    ASSERT_TRUE(values_of_every_setting().contains(setting.name)) << "a setting without a line";
    const std::vector<std::string>& values = values_of_every_setting().at(setting.name);
    const auto by_flag = [&](const std::string& value) {
      return call_of({"--" + setting.name + "=" + value}).options;
    };
    const auto expect = [&](const ServeCall& call, const std::string& value,
                            const std::string& from) {
      EXPECT_TRUE(call.options == by_flag(value)) << value;
      EXPECT_EQ(setting_of(call, setting.name).value, value);
      EXPECT_EQ(setting_of(call, setting.name).from, from);
    };
    const std::string path = file("\n" + assignment(setting, values[0]));
    EXPECT_FALSE(by_flag(values[0]) == defaults.options);
    expect(call_of({"--config", path}), values[0], path + ":2");

    Variables variables;
    variables.set(variable_named(setting.name), values[1]);
    expect(call_of({}), values[1], "environment " + variable_named(setting.name));
    expect(call_of({"--config", path}), values[1], "environment " + variable_named(setting.name));
    expect(call_of({"--config", path, "--" + setting.name + "=" + values[2]}), values[2], "flag");
    variables.set(variable_named(setting.name), "");
    expect(call_of({"--config", path}), values[0], path + ":2");
  }
}

TEST_F(Settings, PrintedSettingsCanBeReadAgain) {
  std::vector<std::string> flags;
  for (const auto& [name, values] : values_of_every_setting()) {
    flags.push_back("--" + name + "=" + values[0]);
  }
  for (const auto& given : {std::vector<std::string>{}, flags}) {
    std::vector<std::string> printing = given;
    printing.emplace_back("--print-config");
    const std::string printed = told(printing, ExitCode::done);
    EXPECT_TRUE(call_of({"--config", file(printed)}).options == call_of(given).options) << printed;
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'),
              static_cast<std::ptrdiff_t>(values_of_every_setting().size()));
  }
}

TEST_F(Settings, PrintedLinesNameTheSourceOfTheValue) {
  variables_.set("DETENT_MEMORY", "1G");
  const std::string path = file("# mine\nwindow = '20m' # wide\n");
  const std::string printed =
      told({"--config", path, "--log-level", "debug", "--print-config"}, ExitCode::done);
  const auto line = [&](const std::string& text, const std::string& from) {
    return text + std::string(36 - text.size(), ' ') + "  # " + from + "\n";
  };
  EXPECT_NE(printed.find(line("window = \"20m\"", path + ":2")), std::string::npos) << printed;
  EXPECT_NE(printed.find(line("memory = \"1G\"", "environment DETENT_MEMORY")), std::string::npos);
  EXPECT_NE(printed.find(line("log-level = \"debug\"", "flag")), std::string::npos);
  EXPECT_NE(printed.find(line("sync = \"always\"", "default")), std::string::npos);
  EXPECT_NE(printed.find(line("# external is not set", "default")), std::string::npos);
}

TEST_F(Settings, NoPasswordIsPrinted) {
  const std::string printed =
      told({"--external", "redis://ada:canary@127.0.0.1:1", "--print-config"}, ExitCode::done);
  EXPECT_EQ(printed.find("canary"), std::string::npos) << printed;
  EXPECT_NE(printed.find("# external holds a password: not shown"), std::string::npos);
}

TEST_F(Settings, AnyBytesOfAFolderArePrintedAsToml) {
  const std::string data = "a\"b\\c\n\x01#\xC3\xBC";
  const std::string printed = told({"--data", data, "--print-config"}, ExitCode::done);
  EXPECT_EQ(call_of({"--config", file(printed)}).options.data, data);
  const std::string bytes = told({"--data", "a\xFF", "--print-config"}, ExitCode::done);
  EXPECT_NE(bytes.find("# data is not UTF-8: not shown"), std::string::npos);
  EXPECT_TRUE(parse_settings(bytes, "f"));
  EXPECT_TRUE(parse_settings(to_toml({{"a", "1", "a\nb = 2\xFF"}}), "f"));
}

TEST_F(Settings, AVariableOrTheFlagNamesTheFile) {
  variables_.set("DETENT_CONFIG", file("data = \"by-variable\"\n"));
  EXPECT_EQ(call_of({}).options.data, "by-variable");
  const std::string other = folder_ / "other.toml";
  std::ofstream(other) << "data = \"by-flag\"\n";
  EXPECT_EQ(call_of({"--config", other}).options.data, "by-flag");
}

TEST_F(Settings, AnOptionalFileMayBeMissing) {
  const std::string missing = folder_ / "missing.toml";
  EXPECT_EQ(told({"--config", missing}, ExitCode::usage),
            "detent serve: " + missing + ": the file does not exist\n");
  variables_.set("DETENT_CONFIG", "-" + missing);
  EXPECT_TRUE(call_of({}).options == ServeOptions{});
  variables_.set("DETENT_CONFIG", "-" + file("memory = \"1M\"\n"));
  EXPECT_NE(told({}, ExitCode::usage).find("detent.toml:1: memory: must be"), std::string::npos);
}

TEST_F(Settings, AnErrorInAFileNamesItsLine) {
  const std::string all = "detent serve: detent.toml";
  EXPECT_EQ(told_of("\nmemroy = \"1G\"\n"),
            all + ":2: there is no setting 'memroy'; did you mean 'memory'?\n");
  EXPECT_EQ(told_of("log_level = \"debug\"\n"),
            all + ":1: there is no setting 'log_level'; did you mean 'log-level'?\n");
  EXPECT_EQ(told_of("colour = \"red\"\n"), all + ":1: there is no setting 'colour'\n");
  EXPECT_EQ(told_of("config = \"x\"\n"), all + ":1: there is no setting 'config'\n");
  EXPECT_EQ(told_of("help = true\n"),
            all + ":1: there is no setting 'help'; did you mean 'http'?\n");
  EXPECT_EQ(told_of("memory = 512\n"), all + ":1: put text in quotes: memory = \"512\"\n");
  EXPECT_EQ(told_of("# a\nmemory = 1G  # b\n"), all + ":2: put text in quotes: memory = \"1G\"\n");
  EXPECT_EQ(told_of("\r\nlog-level=debug\r\n"),
            all + ":2: put text in quotes: log-level = \"debug\"\n");
  EXPECT_EQ(told_of("shards = 1\nshards = 2\n").find("quotes"), std::string::npos);
  EXPECT_EQ(told_of("memory size = 1G\n").find("quotes"), std::string::npos);
  EXPECT_EQ(told_of("memory =\n").find("quotes"), std::string::npos);
  EXPECT_EQ(told_of("memory = \"1G\n").find("quotes: "), std::string::npos);
  EXPECT_EQ(told_of("shards = \"16\"\n"),
            all + ":1: shards must be a whole number, without quotes\n");
  EXPECT_EQ(told_of("shards = 0\n"),
            all + ":1: shards: must be a whole number from 1 to 256, got '0'\n");
  EXPECT_EQ(told_of("memory = true\n"), all + ":1: put text in quotes: memory = \"true\"\n");
  EXPECT_EQ(told_of("[http]\nport = 1\n"),
            all +
                ":1: http must be a string in quotes, a whole number, true or false, but it is a "
                "table\n");
  EXPECT_EQ(told_of("http = [\"127.0.0.1:1\"]\n"),
            all +
                ":1: http must be a string in quotes, a whole number, true or false, but it is an "
                "array\n");
  EXPECT_EQ(told_of("log-level = \"loud\"\n"),
            all + ":1: log-level: must be debug, info, warning or error, got 'loud'\n");
  EXPECT_EQ(told_of("window = \"0s\"\n"), all + ":1: window: must be greater than 0, got '0s'\n");
  EXPECT_EQ(told_of("a = 1\n\nb = \"x\"\n"), all + ":1: there is no setting 'a'\n");
  EXPECT_EQ(told_of("data = \"a\"\ndata = \"b\"\n").rfind(all + ":2: ", 0), 0U);
  EXPECT_EQ(told_of("data = \"a\"\nhttp = 127.0.0.1:1\n").rfind(all + ":2: ", 0), 0U);
  EXPECT_EQ(told_of("data = \"\xFF\"\n").rfind(all + ":1: ", 0), 0U);
  EXPECT_EQ(told_of("data = \"a\"\n[\\]\n").rfind(all + ":2: ", 0), 0U);
  EXPECT_EQ(told_of("data = \"a\"\na\u00e9 = 1\n").rfind(all + ":2: ", 0), 0U);
  EXPECT_EQ(told_of("data = \"\"\n"), all + ":1: data: must name a folder\n");
  EXPECT_EQ(told_of(std::string(kLargestSettingsFile + 1, '\n')), all + ": must be at most 1 MB\n");
  EXPECT_EQ(told({"--config", folder_.path()}, ExitCode::usage),
            "detent serve: " + folder_.path() + ": cannot be read: Is a directory\n");
}

TEST_F(Settings, TheStandardVariableOfACollectorComesBeforeTheDefault) {
  variables_.set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://standard:4318");
  const Setting by_standard = setting_of(call_of({}), "otlp-endpoint");
  EXPECT_EQ(by_standard.value, "http://standard:4318");
  EXPECT_EQ(by_standard.from, "environment OTEL_EXPORTER_OTLP_ENDPOINT");
  for (const auto& [name, value] : {std::pair{"OTEL_SDK_DISABLED", "true"},
                                    {"OTEL_TRACES_EXPORTER", "none"},
                                    {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}) {
    variables_.set(name, value);
    EXPECT_EQ(call_of({}).options.otlp_endpoint, "") << name;
    variables_.set(name, "");
  }
  variables_.set("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
  EXPECT_EQ(call_of({}).options.otlp_endpoint, "");
  const std::string path = file("otlp-endpoint = \"http://file:4318\"\n");
  EXPECT_EQ(call_of({"--config", path}).options.otlp_endpoint, "http://file:4318");
  variables_.set("DETENT_OTLP_ENDPOINT", "http://own:4318");
  EXPECT_EQ(call_of({"--config", path}).options.otlp_endpoint, "http://own:4318");
}

TEST_F(Settings, ARatioIsFromZeroToOne) {
  for (const char* const wrong : {"-0.1", "1.1", "nan", "half", ""}) {
    const std::string flag = std::string("--otlp-ratio=") + wrong;
    EXPECT_NE(told({flag}, ExitCode::usage).find("--otlp-ratio"), std::string::npos) << wrong;
  }
  EXPECT_EQ(call_of({"--otlp-ratio=1"}).options.otlp_ratio, 1);
}

TEST_F(Settings, AnErrorInAVariableNamesIt) {
  variables_.set("DETENT_MEMORY", "many");
  EXPECT_EQ(told({}, ExitCode::usage),
            "detent serve: DETENT_MEMORY: must be a number of megabytes or gigabytes from 64M to "
            "1024G, such as 512M, got 'many'\n");
  variables_.set("DETENT_BEANSTALK_PUBLIC", "maybe");
  EXPECT_EQ(told({}, ExitCode::usage),
            "detent serve: DETENT_BEANSTALK_PUBLIC: must be true or false, got 'maybe'\n");
  variables_.set("DETENT_BEANSTALK_PUBLIC", "");
  EXPECT_TRUE(call_of({"--memory", "1G"}).options.memory_bytes == std::size_t{1} << 30);
}

TEST_F(Settings, AnUnknownVariableIsReported) {
  for (const char* name : {"DETENT_MEMROY", "DETENT_QQQQQQQQQQ", "DETENT_URL", "DETENT_TOKEN",
                           "DETENT_CA", "DETENT_MEMORIES", "DETENT_PORT", "DETENT_SERVICE_HOST",
                           "DETENT_PORT_7070_TCP_ADDR", "ADETENT_MEMROY"}) {
    variables_.set(name, "1G");
  }
  variables_.set("DETENT_CONFIG", file(""));
  variables_.set("DETENT_MEMORY", "1G");
  const std::vector<UnknownVariable> expected{{"DETENT_MEMORIES", "DETENT_MEMORY"},
                                              {"DETENT_MEMROY", "DETENT_MEMORY"}};
  const std::vector<UnknownVariable> all = call_of({}).unknown_variables;
  // The environment of the test run can have more such variables.
  for (const UnknownVariable& one : expected) {
    EXPECT_EQ(std::count(all.begin(), all.end(), one), 1) << one.name;
  }
  for (const char* name :
       {"DETENT_QQQQQQQQQQ", "DETENT_URL", "DETENT_TOKEN", "DETENT_CA", "DETENT_CONFIG",
        "DETENT_MEMORY", "DETENT_PORT", "DETENT_SERVICE_HOST", "DETENT_PORT_7070_TCP_ADDR"}) {
    EXPECT_TRUE(std::none_of(all.begin(), all.end(), [name](const UnknownVariable& one) {
      return one.name == name;
    })) << name;
  }
}

TEST_F(Settings, OtherCommandsReadNoFile) {
  variables_.set("DETENT_CONFIG", "/nowhere/detent.toml");
  const std::vector<const char*> words{"detent", "stats"};
  EXPECT_TRUE(std::holds_alternative<ClientCall>(parse_arguments(2, words.data())));
}

TEST_F(Settings, HelpNamesEveryVariable) {
  const std::string help = told({"--help"}, ExitCode::done);
  for (const auto& [name, values] : values_of_every_setting()) {
    EXPECT_NE(help.find(variable_named(name) + ")"), std::string::npos) << name;
  }
  EXPECT_NE(help.find("DETENT_CONFIG"), std::string::npos);
}

// Reads parts of a file with changed bytes. The reader must return settings or an error.
TEST_F(Settings, AnyFileIsReadOrRefused) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const auto below = [&rng](std::size_t end) { return rng.below(static_cast<std::uint32_t>(end)); };
  const std::string whole =
      "data = \"a\"\nmemory = \"1G\" # x\n[t]\na.b = 1979-05-27T07:32:00Z\nc = [1, {d = 0x1F}]\n"
      "e = '''x'''\nf = \"\"\"\\u00e9\"\"\"\ng = -inf\nh = 1e5\n\"i\" = false\n[[j]]\n";
  std::size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole.substr(below(whole.size()));
    text.resize(below(text.size() + 1));
    for (std::uint64_t edits = below(4); edits > 0 && !text.empty(); --edits) {
      text[below(text.size())] = static_cast<char>(rng.next());
    }
    const auto settings = parse_settings(text, "f");
    if (!settings) {
      ASSERT_EQ(settings.error().message.rfind("f:", 0), 0U) << settings.error().message;
      continue;
    }
    ++accepted;
  }
  EXPECT_GT(accepted, 100U);
}

}  // namespace
}  // namespace detent::cli
