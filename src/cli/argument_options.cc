#include "cli/argument_options.h"

#include <cstdint>

namespace detent::cli {

using std::chrono::milliseconds;

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
  app.add_option("--server", call.server, "the server's address (or DETENT_URL)")
      ->type_name("URL")
      ->capture_default_str();
  app.add_option("--token", call.token, "the access token (or DETENT_TOKEN)")->type_name("TOKEN");
  app.add_option("--ca", call.ca_file,
                 "certificates that are trusted for https, as a file in PEM (or DETENT_CA)")
      ->type_name("FILE");
  app.add_flag_function(
      "--json", [&call](std::int64_t) { call.format = OutputFormat::json; },
      "print the server's answer as it is");
}

CLI::App* add_client_command(CLI::App& app, ClientCall& call, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  add_call_options(*command, call);
  return command;
}

}  // namespace detent::cli
