// A pile of linked timers, as SortedStore wants it.
#pragma once

#include "detent/internal/link_list.h"
#include "detent/internal/sorted_store.h"

namespace detent::internal {

/// Timers in the order in which they came. `Order` tells which Link is a timer's, by link_of(t),
/// and which timer a Link belongs to, by timer_of(link). Owns no timer. Every operation is O(1)
/// but for_each.
template <class Order>
class LinkPile {
  using Timer = typename Order::Timer;

 public:
  bool empty() const noexcept { return list_.empty(); }
  void push(Timer& timer) noexcept { list_.push_back(Order::link_of(timer)); }
  Timer& pop() noexcept { return Order::timer_of(list_.pop_front()); }
  void remove(Timer& timer) noexcept { unlink(Order::link_of(timer)); }
  // The place of the others stays what it was, which is another pile: to remove a link, any will
  // do.
  void append(LinkPile& other, SortedPlace) noexcept { list_.append(other.list_); }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for_each_link(list_, [&visit](Link& link) { visit(Order::timer_of(link)); });
  }

 private:
  LinkList list_;
};

}  // namespace detent::internal
