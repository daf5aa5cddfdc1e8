// Orders that must be paid in time: a shop's time-outs on a server that is killed twice.
//
// The program loads orders through the HTTP batch route while a worker completes what falls due,
// kills the server with kill -9 on the way and starts it again, and then accounts for every order:
// none may be lost, none handed out early, and only what a worker held at a kill may come twice.
// README.md shows how to run it.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "examples/orders/run.h"

namespace {

using detent::Result;

struct Arguments {
  std::size_t count = 200'000;
  std::uint64_t seed = 1;
  std::filesystem::path file;
  std::filesystem::path trace;
  double speed = 0;
  orders::RunOptions run;
};

Result<std::vector<orders::Order>> read(const Arguments& arguments) {
  if (!arguments.trace.empty()) return orders::read_trace(arguments.trace, arguments.speed);
  if (!arguments.file.empty()) return orders::read_orders(arguments.file);
  return orders::generate(arguments.count, arguments.seed);
}

int generate(const Arguments& arguments) {
  std::ofstream out(arguments.file);
  orders::write_orders(orders::generate(arguments.count, arguments.seed), out);
  out.close();
  if (out) return 0;
  std::cerr << "orders: cannot write " << arguments.file << '\n';
  return 1;
}

int run(const Arguments& arguments) {
  const Result<std::vector<orders::Order>> all = read(arguments);
  const Result<bool> ran = all ? orders::run(*all, arguments.run) : Result<bool>(all.error());
  if (ran) return *ran ? 0 : 1;
  std::cerr << "orders: " << ran.error().message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Loads orders into a Detent server, kills it on the way, and accounts for each one.");
  app.require_subcommand(1);
  CLI::App* make = app.add_subcommand("generate", "write orders to a file, one JSON object a line");
  make->add_option("--count", arguments.count, "how many orders")->capture_default_str();
  make->add_option("--seed", arguments.seed, "the same seed, the same orders")
      ->capture_default_str();
  make->add_option("file", arguments.file, "the file to write")->required();

  CLI::App* play = app.add_subcommand("run", "load orders, work, kill, account");
  play->add_option("--server", arguments.run.server, "the detent binary")->required();
  play->add_option("--file", arguments.file, "orders to load; otherwise they are made up");
  play->add_option("--count", arguments.count, "how many to make up")->capture_default_str();
  play->add_option("--seed", arguments.seed, "of the orders made up")->capture_default_str();
  CLI::Option* trace =
      play->add_option("--trace", arguments.trace, "replay a trace of real delays");
  play->add_option("--speed", arguments.speed, "how many times faster than the trace ran")
      ->needs(trace)
      ->check(CLI::PositiveNumber);
  play->add_option("--kills", arguments.run.kills, "kill -9 so often")->capture_default_str();
  play->add_option("--seconds", arguments.run.seconds, "work at least so long")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return make->parsed() ? generate(arguments) : run(arguments);
}
