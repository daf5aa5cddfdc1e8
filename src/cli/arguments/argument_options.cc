#include "cli/arguments/argument_options.h"

#include <cstddef>
#include <cstdint>

#include "cli/help/help_text.h"
#include "cli/output/display.h"
#include "cli/output/text_table.h"

namespace detent::cli {

using std::chrono::milliseconds;

std::string refusal(const Error& error, const std::string& text) {
  constexpr std::size_t kMaxShown = 60;
  const bool is_address = text.find("://") != std::string::npos;
  if (is_address || text.empty()) return error.message;
  return error.message + ", got '" + cut_to(printable(text), kMaxShown) + "'";
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, milliseconds& duration) {
  return add_parsed<milliseconds>(app, name, parse_any_duration,
                                  [&duration](milliseconds value) { duration = value; })
      ->type_name("DURATION");
}

CLI::Option* add_duration(CLI::App& app, const std::string& name,
                          std::optional<milliseconds>& duration) {
  return add_parsed<milliseconds>(app, name, parse_any_duration,
                                  [&duration](milliseconds value) { duration = value; })
      ->type_name("DURATION");
}

void add_call_options(CLI::App& app, ClientCall& call) {
  app.add_option("--server", call.server, "Address of the server, else DETENT_URL")
      ->type_name("URL")
      ->capture_default_str()
      ->group(kServerOptions);
  app.add_option("--token", call.token, "Access token, else DETENT_TOKEN")
      ->type_name("TOKEN")
      ->group(kServerOptions);
  app.add_option("--ca", call.ca_file,
                 "PEM file with the certificates to trust for https, else DETENT_CA")
      ->type_name("FILE")
      ->group(kServerOptions);
  app.add_flag_function(
         "--json", [&call](std::int64_t) { call.format = OutputFormat::json; },
         "Print the answer of the server unchanged")
      ->group(kServerOptions);
}

CLI::App* add_client_command(CLI::App& app, ClientCall& call, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  add_call_options(*command, call);
  return command;
}

}  // namespace detent::cli
