"""Words that may not stand in the code: direct clocks, random devices and mutexes, other names for
what the glossary names, places of one machine, and errors in the log that do not say what to do.

The words are searched in the code without its comments and literals, except machine paths, which
may stand nowhere.
"""

import re

from tidy_rules.source import Finding

RULES = {
    "clock": "time is read and waited for through Clock; only machine_time.cc asks the machine",
    "random": "random numbers come from Rng (src/base/rng.h), seeded; only src/base/rng.cc asks "
              "the machine for a seed",
    "mutex": "mutexes are Mutex and CondVar of src/base/mutex.h, which clang checks",
    "glossary": "one word per idea: docs/glossary.md",
    "log-action": "each error in the log has the field \"action\": what the operator can do",
    "machine-path": "no path of one machine or of a neighbouring folder in the tree",
}

CLOCK = re.compile(r"""
    \b\w+_clock\s*::\s*now\b
  | \b(?:clock_gettime|gettimeofday|timespec_get|clock_nanosleep|nanosleep|usleep)\b
  | \bthis_thread\s*::\s*sleep_(?:for|until)\b
  | (?<![\w.>:])(?:std\s*::\s*|::\s*)?time\s*\(\s*(?:nullptr|NULL|0|&\s*\w+)\s*\)
  | (?<![\w.>:])(?:::\s*sleep\s*\(|sleep\s*\(\s*\d)
""", re.VERBOSE)
RANDOM = re.compile(r"""
    \b(?:random_device|mt19937(?:_64)?|minstd_rand0?|default_random_engine|ranlux\d+\w*|knuth_b)\b
  | (?<![\w.>:])(?:std\s*::\s*|::\s*)?s?rand\s*\(
  | \b(?:[dlm]rand48|getrandom|getentropy|arc4random\w*)\b
""", re.VERBOSE)
MUTEX = re.compile(r"\bstd\s*::\s*(?:(?:recursive_|shared_|timed_|recursive_timed_|shared_timed_)?"
                   r"mutex|condition_variable(?:_any)?|lock_guard|unique_lock|scoped_lock|"
                   r"shared_lock)\b|\bpthread_(?:mutex|cond|rwlock)_\w+")

# rule, what breaks it, the files that may, what to do instead. bench/ measures with its own clocks
# and beside other people's locks; the others are the seams themselves.
BANNED = (
    ("clock", CLOCK, ("src/base/machine_time.cc", "bench/"),
     "take a Clock& (detent/clock.h), in tests a ManualClock"),
    ("random", RANDOM, ("src/base/rng.cc", "bench/", "examples/"),
     "use Rng (src/base/rng.h) with a seed"),
    ("mutex", MUTEX, ("src/base/mutex.h", "src/base/clock.cc", "bench/", "examples/"),
     "use Mutex, MutexLock and CondVar (src/base/mutex.h)"),
)

# Identifiers that are other people's words for ours → our word. A wire protocol's own words stand
# in src/protocol/; the benchmarks speak of peers in theirs.
EVERYWHERE = {
    "jiffy": "tick", "jiffies": "tick", "granularity": "resolution", "expiration": "deadline",
    "poll_at": "next_wakeup", "dedup_key": "key", "dedup_id": "key",
}
WHEEL_WORDS = {
    "bucket": "slot", "promote": "cascade", "redistribute": "cascade", "expires": "deadline",
}
TASK_WORDS = {
    "tube": "queue", "run_at": "due_at", "eta": "due_at", "scheduled_for": "due_at",
    "in_flight": "leased", "inflight": "leased", "acked": "completed", "buried": "dead",
    "morgue": "dead", "reservation": "lease", "ttr": "visibility_timeout", "job_id": "task id",
    "message_id": "task id", "receive_count": "attempt", "retry_count": "attempt",
    "consumer": "worker",
}
TASK_FOLDERS = ("src/task", "src/store", "src/engine", "src/cluster", "src/delivery", "src/server",
                "src/client", "src/cli")

LOG_ERROR = re.compile(r"(?<![\w.>:])log_error\s*\(")

MACHINE_PATH = re.compile(r"(?<![\w.])/" r"work/|\.\./" r"shared\b")
MAY_NAME_NEIGHBOURS = {".ci/run"}


def check(tree):
    for file in tree.files:
        yield from check_machine_paths(file)
        if file.is_cpp:
            yield from check_banned(file)
            yield from check_glossary(file)
            yield from check_log_actions(file)


def check_banned(file):
    for rule, pattern, exempt, instead in BANNED:
        if file.path.startswith(exempt) or not pattern.search(file.code):
            continue  # one search of the text is quicker than a search of each line
        for number, line in enumerate(file.code_lines, start=1):
            match = pattern.search(line)
            if match:
                word = " ".join(match[0].split()).rstrip("( ")
                yield Finding(file.path, number, rule, f"'{word}' is not used here; {instead}")


def check_glossary(file):
    if file.is_under("src/protocol", "bench"):
        return
    words = dict(EVERYWHERE)
    if file.is_under("src/wheel", "include"):
        words |= WHEEL_WORDS
    if file.is_under(*TASK_FOLDERS):
        words |= TASK_WORDS
    pattern = re.compile(r"\b(?:" + "|".join(words) + r")_?\b")
    if not pattern.search(file.code):
        return
    for number, line in enumerate(file.code_lines, start=1):
        for match in pattern.finditer(line):
            ours = words[match[0].rstrip("_")]
            yield Finding(file.path, number, "glossary",
                          f"'{match[0]}' is '{ours}' in docs/glossary.md")


def check_log_actions(file):
    """log_error() and its arguments, up to the closing parenthesis."""
    if file.is_test or file.is_under("src/base/log") or not file.is_under("src"):
        return
    for call in LOG_ERROR.finditer(file.code):
        end, depth = call.end(), 1
        while end < len(file.code) and depth > 0:
            depth += {"(": 1, ")": -1}.get(file.code[end], 0)
            end += 1
        if '{"action"' not in file.text[call.start():end]:
            line = file.code.count("\n", 0, call.start()) + 1
            yield Finding(file.path, line, "log-action",
                          'an error in the log needs {"action", …}: what the operator can do')


def check_machine_paths(file):
    if file.path in MAY_NAME_NEIGHBOURS or not MACHINE_PATH.search(file.text):
        return
    for number, line in enumerate(file.lines, start=1):
        match = MACHINE_PATH.search(line)
        if match:
            yield Finding(file.path, number, "machine-path", f"'{match[0]}' exists on one machine "
                          "only; pass such places in by a variable of the environment")
