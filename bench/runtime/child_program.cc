#include "bench/runtime/child_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "detent/check.h"

namespace detent::bench {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command, int input, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  std::vector<char*> arguments;
  std::vector<std::string> copies = command;
  for (std::string& copy : copies) arguments.push_back(copy.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::perror(arguments[0]);
  _exit(127);
}

}  // namespace

ChildProgram::ChildProgram(const std::vector<std::string>& command) : name_(command.front()) {
  int to_child[2] = {};
  int from_child[2] = {};
  DETENT_CHECK(pipe2(to_child, O_CLOEXEC) == 0);
  DETENT_CHECK(pipe2(from_child, O_CLOEXEC) == 0);
  signal(SIGPIPE, SIG_IGN);  // if the program has ended, its answer is missing
  id_ = fork();
  DETENT_CHECK(id_ >= 0);
  if (id_ == 0) become(command, to_child[0], from_child[1]);
  close(to_child[0]);
  close(from_child[1]);
  questions_ = fdopen(to_child[1], "w");
  answers_ = fdopen(from_child[0], "r");
}

ChildProgram::~ChildProgram() {
  std::fclose(questions_);
  std::fclose(answers_);
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
}

std::vector<double> ChildProgram::ask(const std::string& line) {
  std::vector<double> numbers = ask_and_let_run(line);
  kill(id_, SIGSTOP);
  return numbers;
}

std::vector<double> ChildProgram::ask_and_let_run(const std::string& line) {
  kill(id_, SIGCONT);
  std::fprintf(questions_, "%s\n", line.c_str());
  std::fflush(questions_);
  std::string answer;
  for (int c = std::fgetc(answers_); c != '\n' && c != EOF; c = std::fgetc(answers_)) {
    answer.push_back(static_cast<char>(c));
  }
  std::istringstream words(answer);
  std::string first;
  std::vector<double> numbers;
  words >> first;
  for (double number = 0; words >> number;) numbers.push_back(number);
  if (first != "ok" || !words.eof()) {
    std::fprintf(stderr, "%s: asked '%s', answered '%s'\n", name_.c_str(), line.c_str(),
                 answer.c_str());
    std::exit(1);
  }
  return numbers;
}

}  // namespace detent::bench
