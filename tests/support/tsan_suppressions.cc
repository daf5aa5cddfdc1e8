// Suppressions for ThreadSanitizer. Compiled into the tests if they run under it.
//
// Debian's RocksDB is compiled without ThreadSanitizer. Its skip list passes entries from the
// writing thread to readers with atomics that the sanitizer does not see. But the sanitizer sees
// memcpy and memcmp on their bytes, so it reports a race. The suppression also hides real races in
// our code that RocksDB calls (such as wal_env.h). It does not hide races in our code that calls
// RocksDB, because both accesses are outside the library.
extern "C" const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)

extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:librocksdb.so\n";
}
