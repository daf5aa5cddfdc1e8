#include "cli/serve_arguments.h"

#include <vector>

#include "cli/cluster_arguments.h"
#include "cli/setting_sources.h"

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

/// Where it listens, and to whom.
void add_addresses(CLI::App& serve, ServeOptions& options) {
  add_parsed<HostAndPort>(serve, "--http", parse_address,
                          [&options](const HostAndPort& address) {
                            options.http_host = address.host;
                            options.http_port = address.port;
                          })
      ->description("address to listen on for HTTP; other than loopback only with --auth")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:7070");
  add_parsed<std::string>(serve, "--cors-origin", parse_origin,
                          [&options](const std::string& text) { options.cors_origin = text; })
      ->description(
          "the web site whose pages may use the server in a browser, * for all; else none")
      ->type_name("ORIGIN");
  add_parsed<HostAndPort>(serve, "--beanstalk", parse_address_or_off,
                          [&options](const HostAndPort& address) {
                            options.beanstalk_host = address.host;
                            options.beanstalk_port = address.port;
                          })
      ->description(
          "address to listen on for beanstalk clients; other than loopback only with "
          "--beanstalk-public; or `off`")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:11300");
  serve
      .add_flag("--beanstalk-public", options.beanstalk_public,
                "whoever reaches the beanstalk address may do everything, on other machines too")
      ->envname("DETENT_BEANSTALK_PUBLIC");
}

/// Who may use it.
void add_access(CLI::App& serve, ServeOptions& options) {
  serve.add_option("--auth", options.auth, "file of access tokens; without it none is needed")
      ->envname("DETENT_AUTH")
      ->type_name("FILE");
  serve
      .add_option("--tls-cert", options.tls_cert,
                  "certificate for HTTPS, those that signed it behind it, as a file in PEM")
      ->envname("DETENT_TLS_CERT")
      ->type_name("FILE");
  serve.add_option("--tls-key", options.tls_key, "the certificate's private key, likewise")
      ->envname("DETENT_TLS_KEY")
      ->type_name("FILE");
  add_parsed<std::vector<std::string>>(
      serve, "--host-name", parse_host_names,
      [&options](const std::vector<std::string>& names) { options.host_names = names; })
      ->envname("DETENT_HOST_NAME")
      ->description("names by which a server without --auth may be reached, besides localhost")
      ->type_name("NAME[,NAME]");
}

/// What it delivers to, and how that is signed.
void add_webhooks(CLI::App& serve, ServeOptions& options) {
  serve
      .add_option("--webhook-allow", options.webhook_allow,
                  "addresses that webhooks may have besides public ones, with commas between")
      ->type_name("CIDR");
  serve
      .add_option("--webhook-keys", options.webhook_keys,
                  "keys that sign webhooks, one a line; else the server makes one")
      ->type_name("FILE");
  serve
      .add_option("--sinks", options.sinks,
                  "brokers that queues may be delivered to, a name and an address a line")
      ->type_name("FILE");
}

/// When it tells an operator, and where.
void add_alerts(CLI::App& serve, ServeOptions& options) {
  serve
      .add_option("--alert-webhook", options.alert_webhook,
                  "where alerts are POSTed to, signed as webhooks are; else they are only logged")
      ->type_name("URL");
  add_parsed<std::uint64_t>(serve, "--alert-pending", parse_task_count,
                            [&options](std::uint64_t count) { options.alert_pending = count; })
      ->description("alert while more tasks than this are due and not taken")
      ->type_name("N");
  add_parsed<std::uint64_t>(serve, "--alert-dead", parse_task_count,
                            [&options](std::uint64_t count) { options.alert_dead = count; })
      ->description("alert while more tasks than this are out of attempts")
      ->type_name("N");
  add_parsed<milliseconds>(serve, "--alert-lateness", parse_positive_duration,
                           [&options](milliseconds late) { options.alert_lateness = late; })
      ->description("alert while 1 in 100 tasks fires later than this after it is due")
      ->type_name("DURATION");
}

}  // namespace

void add_data(CLI::App& app, std::filesystem::path& data, const char* what) {
  app.add_option("--data", data, what)
      ->envname("DETENT_DATA")
      ->check([](const std::string& name) { return name.empty() ? "must name a folder" : ""; }, "")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_store(CLI::App& app, std::string& store) {
  app.add_option_function<std::string>(
         "--store", [&store](const std::string& name) { store = name == "rocksdb" ? "" : name; },
         "a PostgreSQL database, postgres://user@host/database, instead of the folder, which is "
         "`rocksdb`")
      ->envname("DETENT_STORE")
      ->type_name("URL");
}

void add_serve(CLI::App& app, ServeOptions& options, std::string& config, bool& print_config) {
  CLI::App* serve = app.add_subcommand("serve", "run a server");
  add_data(*serve, options.data, "folder of the server's data; made if it is not there");
  add_store(*serve, options.store);
  add_addresses(*serve, options);
  add_access(*serve, options);
  add_parsed<milliseconds>(*serve, "--sync", parse_sync,
                           [&options](milliseconds interval) { options.sync_interval = interval; })
      ->description(
          "when an accepted task is on disk: `always` before the answer, or `interval=10ms` at "
          "the latest so long after it")
      ->type_name("WHEN")
      ->default_str("always");
  add_parsed<milliseconds>(*serve, "--window", parse_positive_duration,
                           [&options](milliseconds window) { options.window = window; })
      ->description("how far ahead tasks are held in memory")
      ->type_name("DURATION")
      ->default_str("10m");
  add_parsed<std::size_t>(*serve, "--memory", parse_memory,
                          [&options](std::size_t bytes) { options.memory_bytes = bytes; })
      ->description("memory for tasks and the store together, from 64M")
      ->type_name("SIZE")
      ->default_str("512M");
  serve
      ->add_option("--external", options.external,
                   "a Redis or a detent server that keeps tasks while they are far")
      ->type_name("URL");
  add_parsed<milliseconds>(*serve, "--external-after", parse_positive_duration,
                           [&options](milliseconds after) { options.external_after = after; })
      ->description("tasks due later than this are far; at least twice the window")
      ->type_name("DURATION")
      ->default_str("24h");
  add_webhooks(*serve, options);
  add_cluster(*serve, options.cluster);
  add_alerts(*serve, options);
  add_parsed<LogFormat>(*serve, "--log-format", parse_log_format,
                        [&options](LogFormat format) { options.log_format = format; })
      ->description("how events are told on standard error: for people, or for machines")
      ->type_name("text|json")
      ->default_str("text");
  add_parsed<LogLevel>(*serve, "--log-level", parse_log_level,
                       [&options](LogLevel level) { options.log_level = level; })
      ->description("of which events: those, and what is worse")
      ->type_name("debug|info|warning|error")
      ->default_str("info");
  add_config_options(*serve, config, print_config);
  hide_variables(*serve);
  serve->footer(
      "Runs until SIGTERM or SIGINT, and prints its address when it is ready.\n"
      "Example:\n  detent serve --data /var/lib/detent --log-format json");
}

}  // namespace detent::cli
