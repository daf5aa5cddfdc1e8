// Test fixture that runs commands over a scripted connection. There is no server: a test sets the
// answer, and checks the requests, the output and the exit code.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "tests/support/scripted_http.h"

namespace detent::cli {

class ScriptedCommands : public testing::Test {
 protected:
  void answer(int status, std::string body) {
    script_.answer = net::HttpResponse{.status = status, .body = std::move(body)};
  }
  ExitCode run(ClientCommand command, OutputFormat format = OutputFormat::people) {
    out_.str("");
    err_.str("");
    const ClientCall call{.server = "", .format = format, .command = std::move(command)};
    return run_command(call, client_, {in_, out_, err_, terminal_});
  }
  /// Method, target and body of all requests since the last call of this function.
  std::vector<std::string> asked() {
    std::vector<std::string> lines;
    for (const net::HttpRequest& request : script_.asked) {
      lines.push_back(request.method + " " + request.target +
                      (request.body.empty() ? "" : " " + request.body));
    }
    script_.asked.clear();
    return lines;
  }
  using Lines = std::vector<std::string>;

  test::Script script_;
  Client client_ = test::scripted_client(script_);
  std::istringstream in_;
  std::ostringstream out_;
  std::ostringstream err_;
  Terminal terminal_;
};

}  // namespace detent::cli
