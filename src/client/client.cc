#include "detent/client.h"

#include <algorithm>
#include <array>

#include "client/client_impl.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using Leases = std::span<const std::string>;

/// Converts all `values` to the types of the installed client.
template <class T>
auto to_client_all(std::vector<T> values) {
  std::vector<decltype(to_client(std::declval<T>()))> all;
  all.reserve(values.size());
  for (T& value : values) all.push_back(to_client(std::move(value)));
  return all;
}

/// Converts the results of a call for many elements.
template <class To, class T>
Results<To> to_client_results(const Results<T>& results) {
  Results<To> all;
  all.reserve(results.size());
  for (const ClientResult<T>& result : results) {
    if (!result) {
      all.push_back(result.error());
    } else if constexpr (std::is_void_v<To>) {
      all.emplace_back();
    } else {
      all.push_back(to_client(result.value()));
    }
  }
  return all;
}

/// Returns `function` of the value, or the error.
template <class T, class F>
auto with(ClientResult<T> result, F&& function)
    -> ClientResult<decltype(function(std::declval<T>()))> {
  if (!result) return result.error();
  return function(std::move(result).value());
}

ClientResult<client::ScheduledTask> accepted(ClientResult<json::AcceptedTask> task) {
  return with(std::move(task), [](const json::AcceptedTask& value) { return to_client(value); });
}

ClientResult<client::Queue> queue_of(ClientResult<QueueView> view) {
  return with(std::move(view), [](const QueueView& value) { return to_client(value); });
}

ClientResult<client::Schedule> schedule_of(ClientResult<ScheduleView> view) {
  return with(std::move(view), [](const ScheduleView& value) { return to_client(value); });
}

client::LeaseStatus status_of(const ClientResult<LeaseOutcome>& outcome) {
  if (outcome) return to_client(outcome.value());
  return outcome.error().code == ClientError::Code::unavailable ? client::LeaseStatus::unavailable
                                                                : client::LeaseStatus::error;
}

ClientResult<std::vector<client::LeaseStatus>> statuses(
    ClientResult<Results<LeaseOutcome>> results) {
  return with(std::move(results), [](const Results<LeaseOutcome>& outcomes) {
    std::vector<client::LeaseStatus> all;
    for (const auto& outcome : outcomes) all.push_back(status_of(outcome));
    return all;
  });
}

Repeat repeat_of(std::span<const client::NewTask> tasks) {
  const bool all_have_keys =
      std::all_of(tasks.begin(), tasks.end(), [](const auto& task) { return !task.key.empty(); });
  return all_have_keys ? Repeat::always : Repeat::never;
}

}  // namespace

// ---- connections --------------------------------------------------------------------------------

ClientConnection::ClientConnection(std::unique_ptr<net::HttpClient> prompt,
                                   std::unique_ptr<net::HttpClient> patient, milliseconds retry_for,
                                   Clock& clock)
    : retry_for_(retry_for),
      clock_(clock),
      prompt_(*prompt),
      patient_(*patient),
      api_(std::make_unique<RepeatingHttp>(std::move(prompt), retry_for, clock, note_),
           std::make_unique<RepeatingHttp>(std::move(patient), retry_for, clock, note_)) {}

Result<std::unique_ptr<ClientConnection>> ClientConnection::make(const std::string& url,
                                                                 const ClientOptions& options,
                                                                 Clock& clock) {
  net::HttpClientOptions http{.headers = {}, .ca_file = options.ca_file};
  if (!options.token.empty()) http.headers.emplace_back("authorization", "Bearer " + options.token);
  ASSIGN_OR_RETURN(auto prompt, net::HttpClient::create(url, options.timeout, http));
  ASSIGN_OR_RETURN(auto patient,
                   net::HttpClient::create(url, options.timeout + kMaxLeaseWait, http));
  return std::make_unique<ClientConnection>(std::move(prompt), std::move(patient),
                                            options.retry_for, clock);
}

ClientError ClientConnection::error_of(const Error& error) const {
  ClientError told = to_client(error);
  told.status = note_.status;
  told.is_repeated = note_.sends > 1;
  if (note_.status >= 400) told.problem = api_.last_answer();
  return told;
}

Result<std::unique_ptr<ClientConnection>> Client::Impl::connect_once() const {
  ClientOptions options = options_;
  options.retry_for = milliseconds{0};
  return ClientConnection::make(url_, options, clock_);
}

Result<std::unique_ptr<ClientConnection>> Client::Impl::take() {
  {
    const MutexLock lock(mu_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return ClientConnection::make(url_, options_, clock_);
}

void Client::Impl::give_back(std::unique_ptr<ClientConnection> connection) {
  const MutexLock lock(mu_);
  idle_.push_back(std::move(connection));
}

Client::Client(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Client::~Client() = default;
Client::Client(Client&& other) noexcept = default;
Client& Client::operator=(Client&& other) noexcept = default;

ClientResult<Client> Client::create(std::string url, ClientOptions options) {
  auto impl = std::make_unique<Impl>(std::move(url), std::move(options));
  auto first = impl->take();  // checks the URL and reads the certificates
  if (!first) return to_client(first.error());
  impl->give_back(*std::move(first));
  return Client(std::move(impl));
}

// ---- tasks --------------------------------------------------------------------------------------

ClientResult<client::ScheduledTask> Client::schedule(const client::NewTask& task) {
  return accepted(impl_->call(repeat_of({&task, 1}),
                              [&](ApiClient& api) { return api.schedule(from_client(task)); }));
}

ClientResult<std::vector<ClientResult<client::ScheduledTask>>> Client::schedule_many(
    std::span<const client::NewTask> tasks) {
  std::vector<ScheduleRequest> requests;
  for (const client::NewTask& task : tasks) requests.push_back(from_client(task));
  const auto call = [](ApiClient& api, std::span<const ScheduleRequest> some) {
    return api.schedule_batch(some);
  };
  return with(impl_->call_each(repeat_of(tasks), std::span<const ScheduleRequest>(requests), call),
              to_client_results<client::ScheduledTask, json::AcceptedTask>);
}

ClientResult<client::Task> Client::get(const client::TaskName& task) {
  return with(
      impl_->call(Repeat::always, [&](ApiClient& api) { return api.get(from_client(task)); }),
      [](const TaskSnapshot& snapshot) { return to_client(snapshot); });
}

ClientResult<client::TaskPage> Client::list(const client::ListOptions& options) {
  const auto call = [&](ApiClient& api) {
    return api.list(from_client(options), options.limit, options.cursor);
  };
  return with(impl_->call(Repeat::always, call), [](json::TaskListAnswer answer) {
    return client::TaskPage{.tasks = to_client_all(std::move(answer.tasks)),
                            .cursor = std::move(answer.cursor)};
  });
}

ClientResult<void> Client::cancel(const client::TaskName& task) {
  return impl_->call(Repeat::always, [&](ApiClient& api) { return api.cancel(from_client(task)); });
}

ClientResult<std::vector<ClientResult<void>>> Client::cancel_many(
    std::span<const client::TaskName> tasks) {
  const auto call =
      [](ApiClient& api,
         std::span<const client::TaskName> some) -> Result<std::vector<Result<TaskId>>> {
    ASSIGN_OR_RETURN(const json::TaskNames names, from_client(some));
    return api.cancel_batch(names);
  };
  return with(impl_->call_each(Repeat::always, tasks, call), to_client_results<void, TaskId>);
}

ClientResult<client::ScheduledTask> Client::move(const client::TaskName& task,
                                                 const client::Due& due) {
  return accepted(impl_->call(Repeat::always,
                              [&](ApiClient& api) { return api.move(from_client(task), due); }));
}

ClientResult<std::vector<ClientResult<client::ScheduledTask>>> Client::move_many(
    std::span<const client::TaskName> tasks, const client::Due& due) {
  const auto call = [&due](ApiClient& api, std::span<const client::TaskName> some)
      -> Result<std::vector<Result<json::AcceptedTask>>> {
    ASSIGN_OR_RETURN(json::TaskNames names, from_client(some));
    return api.move_batch({.tasks = std::move(names), .due = due});
  };
  return with(impl_->call_each(Repeat::always, tasks, call),
              to_client_results<client::ScheduledTask, json::AcceptedTask>);
}

ClientResult<client::ScheduledTask> Client::run_now(std::uint64_t id) {
  return accepted(
      impl_->call(Repeat::always, [&](ApiClient& api) { return api.run_now(TaskId{id}); }));
}

// ---- leases -------------------------------------------------------------------------------------

ClientResult<std::vector<client::LeasedTask>> Client::lease(const std::string& queue,
                                                            const client::LeaseOptions& options) {
  const LeaseRequest request{.queue = queue,
                             .max = options.max,
                             .visibility_timeout = options.visibility_timeout,
                             .worker = options.worker};
  return with(
      impl_->call(Repeat::always, [&](ApiClient& api) { return api.lease(request, options.wait); }),
      to_client_all<json::LeasedTaskAnswer>);
}

ClientResult<std::vector<client::LeaseStatus>> Client::complete(
    std::span<const std::string> leases) {
  return statuses(impl_->call_each(Repeat::always, leases,
                                   [](ApiClient& api, Leases some) { return api.complete(some); }));
}

ClientResult<std::vector<client::LeaseStatus>> Client::fail(std::span<const std::string> leases,
                                                            const client::FailOptions& options) {
  const json::Failure failure{.delay = options.delay, .error = options.error};
  return statuses(impl_->call_each(Repeat::always, leases, [&](ApiClient& api, Leases some) {
    return api.fail(some, failure);
  }));
}

ClientResult<std::vector<client::LeaseStatus>> Client::extend(std::span<const std::string> leases,
                                                              milliseconds by) {
  return statuses(impl_->call_each(
      Repeat::always, leases, [by](ApiClient& api, Leases some) { return api.extend(some, by); }));
}

ClientResult<std::vector<client::LeaseStatus>> Client::release(
    std::span<const std::string> leases, const client::ReleaseOptions& options) {
  const json::Release release{.delay = options.delay, .priority = options.priority};
  return statuses(impl_->call_each(Repeat::always, leases, [&](ApiClient& api, Leases some) {
    return api.release(some, release);
  }));
}

// ---- queues -------------------------------------------------------------------------------------

ClientResult<std::vector<client::Queue>> Client::queues() {
  return with(impl_->call(Repeat::always, [](ApiClient& api) { return api.queues(); }),
              to_client_all<QueueView>);
}

ClientResult<client::Queue> Client::queue(const std::string& name) {
  return queue_of(impl_->call(Repeat::always, [&](ApiClient& api) { return api.queue(name); }));
}

ClientResult<client::Queue> Client::change_queue(const std::string& name,
                                                 const client::QueueChange& change) {
  return queue_of(impl_->call(
      Repeat::always, [&](ApiClient& api) { return api.change_queue(name, from_client(change)); }));
}

ClientResult<void> Client::remove_queue(const std::string& name) {
  return impl_->call(Repeat::always, [&](ApiClient& api) { return api.remove_queue(name); });
}

ClientResult<client::Queue> Client::pause(const std::string& name) {
  return queue_of(impl_->call(Repeat::always, [&](ApiClient& api) { return api.pause(name); }));
}

ClientResult<client::Queue> Client::resume(const std::string& name) {
  return queue_of(impl_->call(Repeat::always, [&](ApiClient& api) { return api.resume(name); }));
}

ClientResult<std::uint64_t> Client::purge(const std::string& name) {
  return impl_->call(Repeat::never, [&](ApiClient& api) { return api.purge(name); });
}

ClientResult<std::uint64_t> Client::redrive(const std::string& name) {
  return impl_->call(Repeat::never, [&](ApiClient& api) { return api.redrive(name); });
}

// ---- recurring schedules ------------------------------------------------------------------------

ClientResult<client::Schedule> Client::put_schedule(const std::string& name,
                                                    const client::NewSchedule& schedule) {
  return schedule_of(impl_->call(Repeat::always, [&](ApiClient& api) {
    return api.put_schedule(from_client(name, schedule));
  }));
}

ClientResult<client::Schedule> Client::get_schedule(const std::string& name) {
  return schedule_of(
      impl_->call(Repeat::always, [&](ApiClient& api) { return api.find_schedule(name); }));
}

ClientResult<std::vector<client::Schedule>> Client::schedules() {
  const auto all_pages = [](ApiClient& api) -> Result<std::vector<ScheduleView>> {
    std::vector<ScheduleView> all;
    std::string cursor;
    do {
      ASSIGN_OR_RETURN(json::ScheduleList page, api.schedules(cursor));
      std::move(page.schedules.begin(), page.schedules.end(), std::back_inserter(all));
      cursor = std::move(page.cursor);
    } while (!cursor.empty());
    return all;
  };
  return with(impl_->call(Repeat::always, all_pages), to_client_all<ScheduleView>);
}

ClientResult<std::vector<WallTime>> Client::next_occurrences(const std::string& name,
                                                             std::size_t count) {
  return impl_->call(Repeat::always,
                     [&](ApiClient& api) { return api.next_occurrences(name, count); });
}

ClientResult<client::Schedule> Client::pause_schedule(const std::string& name) {
  return schedule_of(
      impl_->call(Repeat::always, [&](ApiClient& api) { return api.pause_schedule(name); }));
}

ClientResult<client::Schedule> Client::resume_schedule(const std::string& name) {
  return schedule_of(
      impl_->call(Repeat::always, [&](ApiClient& api) { return api.resume_schedule(name); }));
}

ClientResult<client::ScheduledTask> Client::trigger_schedule(const std::string& name) {
  return accepted(
      impl_->call(Repeat::never, [&](ApiClient& api) { return api.trigger_schedule(name); }));
}

ClientResult<void> Client::remove_schedule(const std::string& name) {
  return impl_->call(Repeat::always, [&](ApiClient& api) { return api.remove_schedule(name); });
}

ClientResult<std::string> Client::stats() {
  return impl_->call(Repeat::always, [](ApiClient& api) -> Result<std::string> {
    TRY(api.stats());
    return api.last_answer();
  });
}

}  // namespace detent
