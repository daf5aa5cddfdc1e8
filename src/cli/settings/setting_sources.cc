#include "cli/settings/setting_sources.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/output/suggestion.h"
#include "cli/settings/settings_file.h"

namespace detent::cli {

namespace {

constexpr std::string_view kPrefix = "DETENT_";
constexpr const char* kConfig = "--config";
constexpr const char* kPrintConfig = "--print-config";

Error wrong(const std::string& what) { return Error{ErrorCode::invalid_argument, what, "config"}; }

/// The options that are settings. --help, --config and --print-config are not settings.
std::vector<CLI::Option*> settable(CLI::App& serve) {
  return serve.get_options([](const CLI::Option* option) {
    const std::string name = option->get_name();
    return option->nonpositional() && name != "--help" && name != kConfig && name != kPrintConfig;
  });
}

std::string name_of(const CLI::Option& option) { return option.get_lnames().front(); }

SettingKind kind_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return SettingKind::yes_or_no;
  const std::string type = option.get_type_name();  // "N", or with its range: "N:1 to 256"
  return type == "N" || type.starts_with("N:") ? SettingKind::number : SettingKind::text;
}

const char* to_string(SettingKind kind) {
  switch (kind) {
    case SettingKind::text:
      return "a string in quotes";
    case SettingKind::number:
      return "a whole number, without quotes";
    case SettingKind::yes_or_no:
      return "true or false";
  }
  return "";
}

std::vector<std::string> names_of(const std::vector<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(name_of(*option));
  return names;
}

/// Rejects unknown names and values of a wrong type.
Result<void> check_names(const std::vector<FileSetting>& in_file,
                         const std::vector<CLI::Option*>& options) {
  for (const FileSetting& setting : in_file) {
    const auto same = [&](const CLI::Option* option) { return name_of(*option) == setting.name; };
    const auto option = std::find_if(options.begin(), options.end(), same);
    if (option == options.end()) {
      return wrong(setting.place + ": there is no setting '" + setting.name + "'" +
                   suggestion(setting.name, names_of(options)));
    }
    if (kind_of(**option) == SettingKind::text && setting.kind != SettingKind::text) {
      return wrong(setting.place + ": " + put_in_quotes(setting.name, setting.value));
    }
    if (kind_of(**option) != setting.kind) {
      return wrong(setting.place + ": " + setting.name + " must be " +
                   to_string(kind_of(**option)));
    }
  }
  return ok();
}

/// The message of CLI11 without the name of the flag. The value came from a variable or a file, so
/// the caller adds the name of this source instead.
std::string reason_of(const CLI::Option& option, const std::string& message) {
  const std::string flag = option.get_name() + ": ";
  return message.starts_with(flag) ? message.substr(flag.size()) : message;
}

Result<void> set_option(CLI::Option& option, const std::string& value, const std::string& from) {
  try {
    option.add_result(value);
    option.run_callback();
    return ok();
  } catch (const CLI::ConversionError&) {
    return wrong(from + ": must be " + to_string(kind_of(option)) + ", got '" + value + "'");
  } catch (const CLI::ParseError& error) {
    return wrong(from + ": " + reason_of(option, error.what()));
  }
}

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return text;
}

/// The variable of a standard that sets an option if no other source does; null for most options.
const char* standard_variable_of(const std::string& name) {
  return name == "otlp-endpoint" ? "OTEL_EXPORTER_OTLP_ENDPOINT" : nullptr;
}

const char* value_of(const char* variable) {
  const char* const value = variable != nullptr ? std::getenv(variable) : nullptr;
  return value != nullptr && *value != '\0' ? value : nullptr;
}

/// The value of a variable of OpenTelemetry, which may be set for all programs of a machine. Null
/// if OpenTelemetry is turned off, or if the value is no URL of HTTP, as for gRPC.
const char* value_of_standard(const char* variable) {
  const auto is = [](const char* name, std::string_view value) {
    const char* const set = value_of(name);
    return set != nullptr && set == value;
  };
  if (is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none")) return nullptr;
  if (is("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")) return nullptr;
  const char* const value = value_of(variable);
  return value != nullptr && std::string_view(value).starts_with("http") ? value : nullptr;
}

/// Finds the value of one option and its source. A variable or file sets the option as if it had
/// been a flag.
Result<Setting> fill(CLI::Option& option, const std::vector<FileSetting>& in_file) {
  Setting setting{.name = name_of(option), .value = "", .from = "", .kind = kind_of(option)};
  const std::string variable = variable_of(option.get_name());
  const char* const in_environment = value_of(variable.c_str());
  const char* const standard = standard_variable_of(setting.name);
  const char* const by_standard = value_of_standard(standard);
  const auto same = [&](const FileSetting& one) { return one.name == setting.name; };
  const auto line = std::find_if(in_file.begin(), in_file.end(), same);
  if (option.count() > 0) {
    setting.from = "flag";
  } else if (in_environment != nullptr) {
    TRY(set_option(option, in_environment, variable));
    setting.from = "environment " + variable;
  } else if (line != in_file.end()) {
    TRY(set_option(option, line->value, line->place + ": " + setting.name));
    setting.from = line->place;
  } else if (by_standard != nullptr) {
    TRY(set_option(option, by_standard, standard));
    setting.from = std::string("environment ") + standard;
  } else {
    setting.from = "default";
  }
  setting.value = option.count() > 0 ? joined(option.results()) : option.get_default_str();
  if (setting.kind == SettingKind::yes_or_no && setting.value.empty()) setting.value = "false";
  return setting;
}

/// Kubernetes gives a container the addresses of its services in variables that begin with the name
/// of the service: for a service named detent, DETENT_SERVICE_HOST and DETENT_PORT_7070_TCP_ADDR.
/// `name` is the part behind "DETENT_".
bool is_of_kubernetes(std::string_view name) {
  return name == "PORT" || name.starts_with("PORT_") || name.starts_with("SERVICE_");
}

}  // namespace

std::string variable_of(const std::string& flag) {
  std::string variable(kPrefix);
  for (const char letter : flag.substr(flag.find_first_not_of('-'))) {
    variable += letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  }
  return variable;
}

void add_config_options(CLI::App& serve, std::string& file, bool& print) {
  serve
      .add_option(
          kConfig, file,
          "File of settings, each named like its option; with -FILE the file may be missing")
      ->type_name("FILE");
  serve.add_flag(kPrintConfig, print,
                 "Print all settings and their sources in the format of such a file, and exit");
}

void hide_variables(CLI::App& serve) {
  for (CLI::Option* option : settable(serve)) option->envname("");
}

void show_variables(CLI::App& serve) {
  for (CLI::Option* option : settable(serve)) option->envname(variable_of(option->get_name()));
  serve.get_option(kConfig)->envname(variable_of(kConfig));
}

Result<std::vector<Setting>> fill_settings(CLI::App& serve, const std::string& file) {
  const char* const named = std::getenv(variable_of(kConfig).c_str());
  const std::string path = !file.empty() ? file : named != nullptr ? named : "";
  std::vector<FileSetting> in_file;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(in_file, read_settings_file(path));
  }
  const std::vector<CLI::Option*> options = settable(serve);
  TRY(check_names(in_file, options));
  std::vector<Setting> settings;
  for (CLI::Option* option : options) {
    ASSIGN_OR_RETURN(Setting setting, fill(*option, in_file));
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::vector<UnknownVariable> unknown_variables(CLI::App& serve) {
  std::vector<std::string> known{"URL", "TOKEN", "CA", "CONFIG"};
  for (const CLI::Option* option : settable(serve)) {
    known.push_back(variable_of(option->get_name()).substr(kPrefix.size()));
  }
  std::vector<UnknownVariable> unknown;
  for (const char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!variable.starts_with(kPrefix)) continue;
    const std::string name(variable.substr(kPrefix.size(), variable.find('=') - kPrefix.size()));
    if (is_of_kubernetes(name) || std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    const std::optional<std::string> meant = nearest(name, known);
    if (!meant) continue;
    unknown.push_back(
        {.name = std::string(kPrefix) + name, .nearest = std::string(kPrefix) + *meant});
  }
  std::sort(unknown.begin(), unknown.end(),
            [](const auto& one, const auto& other) { return one.name < other.name; });
  return unknown;
}

}  // namespace detent::cli
