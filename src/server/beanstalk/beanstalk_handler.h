// The handler of one beanstalk client. On a single server it is a session (beanstalk_session.h). On
// a node of a cluster it is a session that asks the nodes that have the jobs (cluster_session.h).
#pragma once

#include <vector>

#include "engine/thread/engine_thread.h"
#include "protocol/beanstalk/command.h"

namespace detent::server {

/// Confined to the thread of the hub's engine, except has_more().
class BeanstalkHandler {
 public:
  virtual ~BeanstalkHandler() = default;

  /// The queue for everything that is posted for this client. It keeps the order of the posts. Can
  /// be called on any thread.
  virtual EngineThread::QueueOf queue() = 0;
  virtual void open() = 0;
  /// Requires: the previous batch has been answered.
  virtual void run(Engine& engine, std::vector<beanstalk::Input> inputs) = 0;
  /// Answers the rest of the batch, once the client has taken the replies sent so far. Requires:
  /// has_more().
  virtual void go_on(Engine& engine) = 0;
  /// The client will send no more commands, so its waits for tasks end.
  virtual void end_waits(Engine& engine) = 0;
  /// The client has disconnected: the leases that it holds are released.
  virtual void close(Engine& engine) = 0;

  /// Returns true if the batch has more commands to answer. Called on the I/O thread, between a
  /// send and go_on().
  virtual bool has_more() const noexcept = 0;
};

}  // namespace detent::server
