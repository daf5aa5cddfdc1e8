// Orders that must be paid in time: the time-outs of a shop, on a server that is killed twice.
//
// The program loads orders with the HTTP batch route, while workers complete the due orders. During
// the run it kills the server with kill -9 and starts it again. At the end it checks every order:
// no order may be lost or handed out early, and only orders that a worker held at a kill may be
// handed out twice. README.md shows how to run it.
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
      "Load orders into a Detent server, kill the server on the way, and check every order.");
  app.require_subcommand(1);
  CLI::App* make =
      app.add_subcommand("generate", "Write orders to a file, one JSON object per line");
  make->add_option("--count", arguments.count, "Set the number of orders")->capture_default_str();
  make->add_option("--seed", arguments.seed, "Set the seed; the same seed gives the same orders")
      ->capture_default_str();
  make->add_option("file", arguments.file, "Name the file to write")->required();

  CLI::App* play =
      app.add_subcommand("run", "Load and complete orders, kill the server, check every order");
  play->add_option("--server", arguments.run.server, "Name the detent program")->required();
  play->add_option("--file", arguments.file, "Load orders from a file instead of generating them");
  play->add_option("--count", arguments.count, "Set the number of generated orders")
      ->capture_default_str();
  play->add_option("--seed", arguments.seed, "Set the seed of generated orders")
      ->capture_default_str();
  CLI::Option* trace =
      play->add_option("--trace", arguments.trace, "Replay a trace of real delays");
  play->add_option("--speed", arguments.speed, "Replay the trace so many times faster")
      ->needs(trace)
      ->check(CLI::PositiveNumber);
  play->add_option("--kills", arguments.run.kills, "Set the number of kills (kill -9)")
      ->capture_default_str();
  play->add_option("--seconds", arguments.run.seconds, "Work for at least so many seconds")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return make->parsed() ? generate(arguments) : run(arguments);
}
