#include "cli/commands/top_terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "detent/clock.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kEnter = "\x1B[?1049h\x1B[?25l";  // alternate screen, hide the cursor
constexpr std::string_view kLeave = "\x1B[?25h\x1B[?1049l";
constexpr std::string_view kHome = "\x1B[H";
constexpr std::string_view kEndLine = "\x1B[K\r\n";
constexpr std::string_view kEndScreen = "\x1B[K\x1B[J";

/// Writes all bytes, also if the terminal takes only a part at a time. Ignores a closed terminal.
void write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Blocks the signals below and makes them readable from a descriptor. The destructor restores the
/// signal mask.
class Signals {
 public:
  Signals() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
      sigaddset(&wanted, signal);
    }
    sigprocmask(SIG_BLOCK, &wanted, &before_);
    descriptor_ = ::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~Signals() {
    if (descriptor_ >= 0) ::close(descriptor_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  /// Returns the next pending signal; 0 if there is none.
  int take() const {
    signalfd_siginfo info{};
    const bool is_read = ::read(descriptor_, &info, sizeof info) == sizeof info;
    return is_read ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// Waits for a signal, and for input if `has_keys`. Returns false after `most`.
bool poll_input(const Signals& signals, bool has_keys, milliseconds most) {
  std::array<pollfd, 2> polled{
      {{.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
       {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
  return ::poll(polled.data(), polled.size(), static_cast<int>(most.count())) > 0;
}

/// The first key in the typed bytes. Keys such as arrows send an escape sequence (ECMA-48: CSI),
/// which is skipped. A single escape byte is the Escape key.
std::optional<char> first_key(std::string_view typed) {
  while (typed.size() > 1 && typed.starts_with('\x1B')) {
    const std::size_t end = typed.find_first_not_of("[O0123456789;", 1);
    if (end == std::string_view::npos) return std::nullopt;
    typed.remove_prefix(end + 1);
  }
  return typed.empty() ? std::nullopt : std::optional(typed.front());
}

class Lines final : public TopDisplay {
 public:
  explicit Lines(std::ostream& out) : out_(out) {}

  bool is_screen() const override { return false; }
  std::size_t width() const override { return 0; }
  std::size_t height() const override { return 0; }
  void show(const std::vector<std::string>& lines) override {
    for (const std::string& line : lines) out_ << line << '\n';
    out_.flush();
  }
  TopEvent wait(milliseconds most) override {
    // The reader of the pipe has closed it, so more lines are useless.
    if (!out_) return {.kind = TopEvent::Kind::quit};
    if (!poll_input(signals_, false, most)) return {.kind = TopEvent::Kind::time};
    const int signal = signals_.take();
    if (signal == SIGTSTP) ::kill(::getpid(), SIGSTOP);  // SIGCONT continues here
    const bool goes_on = signal == SIGTSTP || signal == SIGWINCH;
    return {.kind = goes_on ? TopEvent::Kind::time : TopEvent::Kind::quit};
  }

 private:
  std::ostream& out_;
  const Signals signals_;
};

class Screen final : public TopDisplay {
 public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    enter();
  }
  ~Screen() override { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool is_screen() const override { return true; }
  std::size_t width() const override { return size().ws_col > 0 ? size().ws_col : 80u; }
  std::size_t height() const override { return size().ws_row > 0 ? size().ws_row : 24u; }

  void show(const std::vector<std::string>& lines) override {
    std::string bytes(kHome);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      bytes += lines[i];
      bytes += i + 1 < lines.size() ? kEndLine : kEndScreen;
    }
    write_all(bytes);
  }

  /// Keys and signals do not delay the next update: the interval counts from the last update.
  TopEvent wait(milliseconds most) override {
    const MonotonicTime now = clock_.now();
    if (!due_) due_ = now + most;
    const auto left = std::chrono::ceil<milliseconds>(std::max(*due_ - now, {}));
    if (left.count() == 0 || !poll_input(signals_, true, left)) {
      due_.reset();
      return {.kind = TopEvent::Kind::time};
    }
    if (const int signal = signals_.take(); signal != 0) return event_of(signal);
    return read_key();
  }

 private:
  static winsize size() {
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size;
  }

  TopEvent event_of(int signal) {
    if (signal == SIGWINCH) return {.kind = TopEvent::Kind::resize};
    if (signal != SIGTSTP) return {.kind = TopEvent::Kind::quit};
    leave();
    ::kill(::getpid(), SIGSTOP);  // SIGCONT continues here
    enter();
    return {.kind = TopEvent::Kind::resize};
  }

  TopEvent read_key() {
    std::array<char, 64> keys{};
    const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
    if (count <= 0) return {.kind = TopEvent::Kind::quit};  // the terminal is closed
    const auto key = first_key({keys.data(), static_cast<std::size_t>(count)});
    if (!key) return {.kind = TopEvent::Kind::resize};
    return {.kind = TopEvent::Kind::key, .key = *key};
  }

  void enter() {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    write_all(kEnter);
  }
  void leave() {
    write_all(kLeave);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }

  const SystemClock clock_;
  const Signals signals_;
  termios before_{};
  std::optional<MonotonicTime> due_;
};

}  // namespace

std::unique_ptr<TopDisplay> open_top_display(const Streams& streams) {
  const bool is_screen = streams.terminal.columns > 0 && streams.terminal.is_input_terminal;
  if (is_screen) return std::make_unique<Screen>();
  return std::make_unique<Lines>(streams.out);
}

}  // namespace detent::cli
