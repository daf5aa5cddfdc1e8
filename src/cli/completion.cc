#include "cli/completion.h"

#include <string>
#include <string_view>
#include <vector>

#include "detent/check.h"

namespace detent::cli {

namespace {

/// A place of the command line: before the command (""), or after "put", "cron", "cron next".
struct Place {
  std::string path;
  const CommandEntry* entry;
};

void add_places(const std::string& path, const CommandEntry& entry, std::vector<Place>& places) {
  places.push_back({path, &entry});
  for (const CommandEntry& part : entry.commands) {
    add_places(path.empty() ? part.name : path + " " + part.name, part, places);
  }
}

std::vector<Place> places_of(const CommandEntry& program) {
  std::vector<Place> places;
  add_places("", program, places);
  return places;
}

/// In single quotes, in which `quote` stands for one.
std::string in_quotes(std::string_view text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else {
      out.push_back(c);
    }
  }
  return out + "'";
}
std::string for_sh(std::string_view text) { return in_quotes(text, R"('\'')"); }
std::string for_fish(std::string_view text) { return in_quotes(text, R"(\')"); }

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// What leads from a place to the next, one line each: `before` ":put" `between` "put" `after`.
std::string steps(const std::vector<Place>& places, std::string_view before,
                  std::string_view between, std::string_view after) {
  std::string out;
  for (const Place& place : places) {
    if (place.path.empty()) continue;
    const std::size_t blank = place.path.rfind(' ');
    const std::string from = blank == std::string::npos ? "" : place.path.substr(0, blank);
    out.append(before).append(for_sh(from + ":" + place.entry->name)).append(between);
    out.append(for_sh(place.path)).append(after);
  }
  return out;
}
std::string sh_steps(const std::vector<Place>& places) {
  return steps(places, "      ", ") command=", " ;;\n");
}

bool is_queue(const OptionEntry& option) {
  return option.name == "QUEUE" || option.value == "QUEUE" || option.name == "--queue";
}
/// The names of the server's queues, one a line.
constexpr std::string_view kQueueNames =
    "timeout 2 detent queues 2>/dev/null </dev/null | sed '1d; s/ .*//'";

// ---- bash ----

/// How the words after an option, or those of an argument, are completed.
std::string bash_values(const OptionEntry& option) {
  if (!option.words.empty()) return "_detent_words " + for_sh(join(option.words));
  if (option.is_path()) return option.value == "DIR" ? "_detent_paths -d" : "_detent_paths -f";
  if (is_queue(option)) return "_detent_queues";
  return "COMPREPLY=()";
}

std::string bash_script(const std::vector<Place>& places) {
  std::string values;
  std::string options;
  std::string words;
  for (const auto& [path, entry] : places) {
    std::string names = "--help";
    for (const OptionEntry& option : entry->options) {
      names += " " + option.name;
      if (option.is_flag()) continue;
      values +=
          "    " + for_sh(path + " " + option.name) + ") " + bash_values(option) + "; return ;;\n";
    }
    options += "      " + for_sh(path) + ") _detent_words " + for_sh(names) + " ;;\n";
    std::string commands;
    for (const CommandEntry& part : entry->commands) commands += part.name + " ";
    if (!commands.empty()) {
      words += "    " + for_sh(path) + ") _detent_words " + for_sh(commands) + " ;;\n";
    } else if (!entry->arguments.empty()) {
      words += "    " + for_sh(path) + ") " + bash_values(entry->arguments.front()) + " ;;\n";
    }
  }
  return R"sh(# Completions of bash for detent, as `detent completion bash` prints them.
_detent_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_detent_paths() {
  compopt -o filenames 2>/dev/null
  local IFS=$'\n'
  COMPREPLY=($(compgen "$1" -- "$cur"))
}
_detent_queues() {
  local name
  while read -r name; do
    [[ $name == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
  done < <()sh" +
         std::string(kQueueNames) + R"()
}
_detent() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' i
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $before == '=' && $COMP_CWORD -gt 1 ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command:${COMP_WORDS[i]}" in
)" + sh_steps(places) +
         R"(    esac
  done
  case "$command $before" in
)" + values +
         R"(  esac
  if [[ $cur == -* ]]; then
    case "$command" in
)" + options +
         R"(    esac
    return
  fi
  case "$command" in
)" + words +
         R"(  esac
}
complete -F _detent detent
)";
}

// ---- zsh ----

std::string zsh_values(const OptionEntry& option) {
  if (!option.words.empty()) return "compadd -- " + join(option.words);
  if (option.is_path()) return option.value == "DIR" ? "_files -/" : "_files";
  if (is_queue(option)) return "_detent_queues";
  return "_message " + for_sh(option.value.empty() ? option.name : option.value);
}

/// "name:what it is", as _describe takes it.
std::string zsh_described(const std::string& name, const std::string& what) {
  return " " + for_sh(name + ":" + what);
}

std::string zsh_script(const std::vector<Place>& places) {
  std::string values;
  std::string options;
  std::string words;
  for (const auto& [path, entry] : places) {
    std::string described = zsh_described("--help", "print the options, with examples");
    for (const OptionEntry& option : entry->options) {
      described += zsh_described(option.name, option.what);
      if (option.is_flag()) continue;
      values +=
          "    " + for_sh(path + " " + option.name) + ") " + zsh_values(option) + "; return ;;\n";
    }
    options += "      " + for_sh(path) + ") entries=(" + described + ") ;;\n";
    std::string commands;
    for (const CommandEntry& part : entry->commands) {
      commands += zsh_described(part.name, part.what);
    }
    if (!commands.empty()) {
      words +=
          "    " + for_sh(path) + ") entries=(" + commands + "); _describe command entries ;;\n";
    } else if (!entry->arguments.empty()) {
      words += "    " + for_sh(path) + ") " + zsh_values(entry->arguments.front()) + " ;;\n";
    }
  }
  return R"(#compdef detent
# Completions of zsh for detent, as `detent completion zsh` prints them.
_detent_queues() {
  local -a names
  names=("${(@f)$()" +
         std::string(kQueueNames) +
         R"()}")
  compadd -- $names
}
_detent() {
  local command='' i
  local -a entries
  for ((i = 2; i < CURRENT; ++i)); do
    case "$command:$words[i]" in
)" + sh_steps(places) +
         R"(    esac
  done
  case "$command $words[CURRENT-1]" in
)" + values +
         R"(  esac
  if [[ $words[CURRENT] == -* ]]; then
    case "$command" in
)" + options +
         R"(    esac
    _describe -o option entries
    return
  fi
  case "$command" in
)" + words +
         R"(  esac
}
if [ "$funcstack[1]" = _detent ]; then
  _detent "$@"
else
  compdef _detent detent
fi
)";
}

// ---- fish ----

std::string fish_line(const std::string& path, const std::string& rest, const std::string& what) {
  return "complete -c detent -n " + for_fish("__detent_at " + for_sh(path)) + " " + rest +
         (what.empty() ? "" : " -d " + for_fish(what)) + "\n";
}

std::string fish_values(const OptionEntry& option) {
  if (!option.words.empty()) return " -x -a " + for_fish(join(option.words));
  if (option.is_path()) return " -r -F";
  if (is_queue(option)) return " -x -a '(__detent_queues)'";
  return option.is_flag() ? "" : " -x";
}

std::string fish_script(const std::vector<Place>& places) {
  std::string lines;
  for (const auto& [path, entry] : places) {
    lines += fish_line(path, "-l help", "print the options, with examples");
    for (const OptionEntry& option : entry->options) {
      lines += fish_line(path, "-l " + option.name.substr(2) + fish_values(option), option.what);
    }
    for (const CommandEntry& part : entry->commands) {
      lines += fish_line(path, "-a " + part.name, part.what);
    }
    for (const OptionEntry& argument : entry->arguments) {
      const bool is_completed = !argument.words.empty() || argument.is_path() || is_queue(argument);
      if (is_completed) lines += fish_line(path, fish_values(argument).substr(1), "");
    }
  }
  return R"(# Completions of fish for detent, as `detent completion fish` prints them.
function __detent_command
  set -l command ''
  for word in (commandline -opc)[2..-1]
    switch "$command:$word"
)" + steps(places, "      case ", "\n        set command ", "\n") +
         R"(    end
  end
  echo $command
end
function __detent_at
  set -l command (__detent_command)
  test "$command" = "$argv[1]"
end
function __detent_queues
  )" + std::string(kQueueNames) +
         R"(
end
complete -c detent -f
)" + lines;
}

}  // namespace

std::string render_completion(const CommandEntry& program, Shell shell) {
  const std::vector<Place> places = places_of(program);
  switch (shell) {
    case Shell::bash:
      return bash_script(places);
    case Shell::zsh:
      return zsh_script(places);
    case Shell::fish:
      return fish_script(places);
  }
  DETENT_CHECK(false);
  return {};
}

}  // namespace detent::cli
