// Who answers one beanstalk client: on a server alone its session (beanstalk_session.h), on a node
// of a cluster one that asks the nodes that have the jobs (cluster_session.h).
#pragma once

#include <vector>

#include "engine/engine_thread.h"
#include "protocol/beanstalk/command.h"

namespace detent::server {

/// Confined to the thread of the hub's engine, has_more() apart.
class BeanstalkHandler {
 public:
  virtual ~BeanstalkHandler() = default;

  /// What all that is posted for the client is posted with, so that it runs in the order of the
  /// posts. On any thread.
  virtual EngineThread::QueueOf queue() = 0;
  virtual void open() = 0;
  /// Requires: the batch before has been answered.
  virtual void run(Engine& engine, std::vector<beanstalk::Input> inputs) = 0;
  /// After what was sent has been taken: the rest of the batch. Requires: has_more().
  virtual void go_on(Engine& engine) = 0;
  /// The client will send no more: it waits for no task any longer.
  virtual void end_waits(Engine& engine) = 0;
  /// The client has gone: the leases it holds are given back.
  virtual void close(Engine& engine) = 0;

  /// On the I/O thread, when something was sent and until go_on(): whether there is more to answer.
  virtual bool has_more() const noexcept = 0;
};

}  // namespace detent::server
