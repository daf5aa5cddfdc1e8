// What ThreadSanitizer must not tell of: compiled into the tests when they run under it.
//
// Debian's RocksDB is not instrumented. Its skip list gives entries from the writing thread to
// readers by atomics that the sanitizer does not see, while it does see memcpy and memcmp on their
// bytes, and tells of a race. That hides a race of ours in what RocksDB calls (log_guard.h and the
// like), but not in what calls RocksDB: there both accesses are outside of it.
extern "C" const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)

extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:librocksdb.so\n";
}
