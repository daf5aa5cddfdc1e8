// LinkPile: a pile of linked timers for SortedStore.
#pragma once

#include "detent/internal/link_list.h"
#include "detent/internal/sorted_store.h"

namespace detent::internal {

/// Timers in the order in which they came. `Order` converts between a timer and its Link:
/// link_of(t) and timer_of(link). Owns no timer. Each operation is O(1), except for_each, which is
/// O(timers).
template <class Order>
class LinkPile {
  using Timer = typename Order::Timer;

 public:
  bool empty() const noexcept { return list_.empty(); }
  void push(Timer& timer) noexcept { list_.push_back(Order::link_of(timer)); }
  Timer& pop() noexcept { return Order::timer_of(list_.pop_front()); }
  void remove(Timer& timer) noexcept { unlink(Order::link_of(timer)); }
  // The moved timers keep the place of the other pile. That is correct, because a link is removed
  // from every pile in the same way.
  void append(LinkPile& other, SortedPlace) noexcept { list_.append(other.list_); }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for_each_link(list_, [&visit](Link& link) { visit(Order::timer_of(link)); });
  }

 private:
  LinkList list_;
};

}  // namespace detent::internal
