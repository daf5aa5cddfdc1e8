// Open leases survive a graceful stop and the next start. They also survive a failure of the store.
//
// Leases are in memory. At a graceful stop, keep() writes each lease as a key that belongs to no
// queue, in the same way as marks (far_verbs.cc). The next engine takes the leases over with their
// old tokens. Its first write contains a note with its epoch, which says that the written leases of
// lower epochs are void. So the engine does not have to remove them, and they stay void if it
// crashes. If an engine fails before its first write, for example while it opens its store, it has
// handed out no task. The written leases are then still valid for the engine after it.
//
// The keys have expired when they are written, so they are trimmed with the other expired keys. The
// note is trimmed after them.
//
// After a failure of the store, the next engine takes the leases over from the memory of the failed
// engine.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/verbs/engine_parts.h"

namespace detent {

class KeptLeases {
 public:
  /// `parts` must outlive it.
  explicit KeptLeases(EngineParts& parts) noexcept : parts_(parts) {}

  /// Stages the open leases of workers, for the last commit before a stop.
  void keep();
  /// At a start: opens the leases again that the engine before kept, and stages the note. Errors:
  /// the store failed.
  Result<void> take_up();
  /// As Engine::take_over_leases(), from the parts of the failed engine.
  void take_over(const EngineParts& failed);

 private:
  struct Kept;

  void keep(std::uint64_t number, const Lease& lease);
  Result<void> take_up_written(KeyRecord& note);
  template <class Visit>
  Result<void> visit_written(Visit visit);
  Result<void> take_up(const Kept& kept, const KeyRecord& record);
  void take_over(HeldLease held, const EngineTime& time);

  EngineParts& parts_;
};

}  // namespace detent
