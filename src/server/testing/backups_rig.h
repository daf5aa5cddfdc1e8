// Backups of a folder without a store, for tests of the routes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/testing/test_folder.h"
#include "detent/clock.h"
#include "server/backup/backups.h"
#include "store/checkpoints.h"

namespace detent::server {

struct BackupsRig {
  explicit BackupsRig(const Clock& clock)
      : backups({.data = data.path(), .checkpoints = checkpoints}, clock) {
    checkpoints->opened([](const std::string& path) -> Result<void> {
      std::filesystem::create_directory(path);
      return ok();
    });
  }

  const TestFolder data;
  const std::shared_ptr<Checkpoints> checkpoints = std::make_shared<Checkpoints>();
  Backups backups;
};

}  // namespace detent::server
