// Circular doubly linked lists of links that live inside other objects.
//
// A list is one link that points at itself when empty (the sentinel), so taking a link out needs
// neither the list nor a branch for its ends. Timers are kept this way because cancelling one must
// be O(1) from the timer alone, and because joining two lists is O(1) too.
#pragma once

namespace detent::internal {

/// A place in a list. Not linked: both null, or stale after it was taken out.
struct Link {
  Link* prev = nullptr;
  Link* next = nullptr;
};

/// A list that owns none of its links. Neither copyable nor movable: links point at it.
/// Thread-compatible. Every operation is O(1).
class LinkList {
 public:
  LinkList() noexcept : sentinel_{&sentinel_, &sentinel_} {}
  LinkList(const LinkList&) = delete;
  LinkList& operator=(const LinkList&) = delete;

  bool empty() const noexcept { return sentinel_.next == &sentinel_; }

  /// Requires: `link` is in no list.
  void push_back(Link& link) noexcept {
    link.prev = sentinel_.prev;
    link.next = &sentinel_;
    sentinel_.prev->next = &link;
    sentinel_.prev = &link;
  }

  /// Takes out the first link. Requires: !empty().
  Link& pop_front() noexcept {
    Link& link = *sentinel_.next;
    sentinel_.next = link.next;
    link.next->prev = &sentinel_;
    return link;
  }

  /// Moves every link of `other` to the end of this list, in order.
  void append(LinkList& other) noexcept {
    if (other.empty()) return;
    Link& first = *other.sentinel_.next;
    Link& last = *other.sentinel_.prev;
    first.prev = sentinel_.prev;
    sentinel_.prev->next = &first;
    last.next = &sentinel_;
    sentinel_.prev = &last;
    other.sentinel_ = {&other.sentinel_, &other.sentinel_};
  }

  /// The link that marks both ends; its `next` is the first link of the list.
  const Link& sentinel() const noexcept { return sentinel_; }

 private:
  Link sentinel_;
};

/// Takes `link` out of the list it is in.
/// Returns: the sentinel of that list when this leaves it empty, else null.
inline const Link* unlink(Link& link) noexcept {
  link.prev->next = link.next;
  link.next->prev = link.prev;
  return link.prev == link.next ? link.prev : nullptr;
}

/// Puts `link` into the list that `before` is in, behind it; before its first link when `before` is
/// the sentinel. Requires: `link` is in no list.
inline void insert_behind(Link& before, Link& link) noexcept {
  link.prev = &before;
  link.next = before.next;
  before.next->prev = &link;
  before.next = &link;
}

/// Calls visit(Link&) for each link in order; it may do anything to that link, but not take others
/// out.
template <class Visit>
void for_each_link(const LinkList& list, const Visit& visit) {
  for (Link* link = list.sentinel().next; link != &list.sentinel();) {
    Link* const next = link->next;
    visit(*link);
    link = next;
  }
}

}  // namespace detent::internal
