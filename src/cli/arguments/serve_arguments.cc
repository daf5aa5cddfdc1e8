#include "cli/arguments/serve_arguments.h"

#include <vector>

#include "cli/arguments/cluster_arguments.h"
#include "cli/settings/setting_sources.h"

namespace detent::cli {
namespace {

using std::chrono::milliseconds;

/// Addresses of HTTP and beanstalk, and the clients that may use them.
void add_addresses(CLI::App& serve, ServeOptions& options) {
  add_parsed<HostAndPort>(serve, "--http", parse_address,
                          [&options](const HostAndPort& address) {
                            options.http_host = address.host;
                            options.http_port = address.port;
                          })
      ->description(
          "IP address or localhost, and port, for HTTP; an address other than loopback needs "
          "--auth")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:7070");
  add_parsed<std::string>(serve, "--cors-origin", parse_origin,
                          [&options](const std::string& text) { options.cors_origin = text; })
      ->description(
          "Web site whose pages may use the server from a browser; * for all sites; default: none")
      ->type_name("ORIGIN");
  add_parsed<HostAndPort>(serve, "--beanstalk", parse_address_or_off,
                          [&options](const HostAndPort& address) {
                            options.beanstalk_host = address.host;
                            options.beanstalk_port = address.port;
                          })
      ->description(
          "IP address or localhost, and port, for beanstalk clients, or off; an address other than "
          "loopback needs "
          "--beanstalk-public")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:11300");
  serve
      .add_flag("--beanstalk-public", options.beanstalk_public,
                "Allow full access to every client that can reach the beanstalk address")
      ->envname("DETENT_BEANSTALK_PUBLIC");
}

/// Access tokens, TLS and names of the server.
void add_access(CLI::App& serve, ServeOptions& options) {
  serve
      .add_option("--auth", options.auth,
                  "File of access tokens; without it, clients need no token")
      ->envname("DETENT_AUTH")
      ->type_name("FILE");
  serve
      .add_option("--tls-cert", options.tls_cert,
                  "PEM file with the certificate chain for HTTPS, server certificate first")
      ->envname("DETENT_TLS_CERT")
      ->type_name("FILE");
  serve
      .add_option("--tls-key", options.tls_key, "PEM file with the private key of the certificate")
      ->envname("DETENT_TLS_KEY")
      ->type_name("FILE");
  add_parsed<std::vector<std::string>>(
      serve, "--host-name", parse_host_names,
      [&options](const std::vector<std::string>& names) { options.host_names = names; })
      ->envname("DETENT_HOST_NAME")
      ->description("Host names that clients may use to reach a server without --auth")
      ->type_name("NAME[,NAME]");
}

/// Delivery to webhooks and sinks.
void add_webhooks(CLI::App& serve, ServeOptions& options) {
  serve
      .add_option("--webhook-allow", options.webhook_allow,
                  "Address blocks, separated by commas, that webhooks may use in addition to "
                  "public addresses")
      ->type_name("CIDR");
  serve
      .add_option(
          "--webhook-keys", options.webhook_keys,
          "File of keys that sign webhooks, one per line; default: a key that the server creates")
      ->type_name("FILE");
  serve
      .add_option("--sinks", options.sinks,
                  "File of brokers that queues can use as sinks, one name and address per line")
      ->type_name("FILE");
}

/// Alerts for the operator.
void add_alerts(CLI::App& serve, ServeOptions& options) {
  serve
      .add_option(
          "--alert-webhook", options.alert_webhook,
          "URL that gets the alerts by POST, signed like webhooks; default: alerts are only logged")
      ->type_name("URL");
  add_number(serve, "--alert-pending", options.alert_pending, {})
      ->description("Alert while more than this number of tasks are ready and not leased");
  add_number(serve, "--alert-dead", options.alert_dead, {})
      ->description("Alert while more than this number of tasks are dead");
  add_parsed<milliseconds>(serve, "--alert-lateness", parse_positive_duration,
                           [&options](milliseconds late) { options.alert_lateness = late; })
      ->description("Alert while 1 in 100 tasks fires later than this time after it is due")
      ->type_name("DURATION");
}

/// Traces of tasks.
void add_tracing(CLI::App& serve, ServeOptions& options) {
  serve
      .add_option("--otlp-endpoint", options.otlp_endpoint,
                  "OpenTelemetry collector that gets traces over HTTP; default: "
                  "OTEL_EXPORTER_OTLP_ENDPOINT, or no traces")
      ->type_name("URL");
  add_parsed<double>(serve, "--otlp-ratio", parse_ratio,
                     [&options](double ratio) { options.otlp_ratio = ratio; })
      ->description(
          "Share of tasks to trace, from 0 to 1, of those whose producer sent no traceparent")
      ->type_name("RATIO")
      ->default_str("1");
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
         "PostgreSQL database, postgres://user@host/database, instead of the data folder; rocksdb "
         "means the data folder")
      ->envname("DETENT_STORE")
      ->type_name("URL");
}

void add_serve(CLI::App& app, ServeOptions& options, std::string& config, bool& print_config) {
  CLI::App* serve = app.add_subcommand("serve", "Run a server");
  add_data(*serve, options.data, "Data folder of the server; created if it is missing");
  add_store(*serve, options.store);
  add_addresses(*serve, options);
  add_access(*serve, options);
  add_parsed<milliseconds>(*serve, "--sync", parse_sync,
                           [&options](milliseconds interval) { options.sync_interval = interval; })
      ->description(
          "When an accepted task is on disk: always means before the answer, interval=10ms means "
          "at "
          "most this time after the answer")
      ->type_name("WHEN")
      ->default_str("always");
  add_parsed<milliseconds>(*serve, "--window", parse_positive_duration,
                           [&options](milliseconds window) { options.window = window; })
      ->description("Hold tasks in memory that are due within this time")
      ->type_name("DURATION")
      ->default_str("10m");
  add_parsed<std::size_t>(*serve, "--memory", parse_memory,
                          [&options](std::size_t bytes) { options.memory_bytes = bytes; })
      ->description("Memory for tasks and the store together, from 64M to 1024G")
      ->type_name("SIZE")
      ->default_str("512M");
  add_parsed<std::uint64_t>(
      *serve, "--min-free-disk", parse_free_disk,
      [&options](std::uint64_t bytes) { options.min_free_disk_bytes = bytes; })
      ->description(
          "Refuse new tasks while the disk of the data folder has less free space; 0: never, "
          "otherwise from 1M to 1024G")
      ->type_name("SIZE")
      ->default_str("256M");
  serve
      ->add_option("--external", options.external,
                   "Redis or other detent server that keeps far tasks")
      ->type_name("URL");
  add_parsed<milliseconds>(*serve, "--external-after", parse_positive_duration,
                           [&options](milliseconds after) { options.external_after = after; })
      ->description("Tasks that are due later than this are far; at least twice --window")
      ->type_name("DURATION")
      ->default_str("24h");
  add_webhooks(*serve, options);
  add_cluster(*serve, options.cluster);
  add_alerts(*serve, options);
  add_tracing(*serve, options);
  add_parsed<LogFormat>(*serve, "--log-format", parse_log_format,
                        [&options](LogFormat format) { options.log_format = format; })
      ->description("Format of the log on standard error: text for people, json for machines")
      ->type_name("text|json")
      ->default_str("text");
  add_parsed<LogLevel>(*serve, "--log-level", parse_log_level,
                       [&options](LogLevel level) { options.log_level = level; })
      ->description("Minimum level to log")
      ->type_name("debug|info|warning|error")
      ->default_str("info");
  add_config_options(*serve, config, print_config);
  hide_variables(*serve);
  serve->footer(
      "The server runs until it gets SIGTERM or SIGINT. It prints its address when it is ready.\n"
      "Example:\n  detent serve --data /var/lib/detent --log-format json");
}

}  // namespace detent::cli
