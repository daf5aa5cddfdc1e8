// LinkList: circular doubly linked lists of links that live inside other objects.
//
// A list has one link of its own, the sentinel, which points to itself if the list is empty.
// Removing a link therefore needs neither the list nor a branch for its ends. Timers use such lists
// because cancelling needs only the timer and is O(1), and because joining two lists is O(1).
#pragma once

namespace detent::internal {

/// A place in a list. Before it is first linked, both pointers are null. After it was removed, they
/// are stale.
struct Link {
  Link* prev = nullptr;
  Link* next = nullptr;
};

/// A list that owns none of its links. Neither copyable nor movable, because its links point to it.
/// Thread-compatible. Each operation is O(1).
class LinkList {
 public:
  LinkList() noexcept : sentinel_{&sentinel_, &sentinel_} {}
  LinkList(const LinkList&) = delete;
  LinkList& operator=(const LinkList&) = delete;

  bool empty() const noexcept { return sentinel_.next == &sentinel_; }

  /// Adds a link at the end. Requires: `link` is in no list.
  void push_back(Link& link) noexcept {
    link.prev = sentinel_.prev;
    link.next = &sentinel_;
    sentinel_.prev->next = &link;
    sentinel_.prev = &link;
  }

  /// Removes and returns the first link. Requires: !empty().
  Link& pop_front() noexcept {
    Link& link = *sentinel_.next;
    sentinel_.next = link.next;
    link.next->prev = &sentinel_;
    return link;
  }

  /// Moves all links of `other` to the end of this list, in their order.
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

  /// Returns the link that marks both ends; its `next` is the first link of the list.
  const Link& sentinel() const noexcept { return sentinel_; }

 private:
  Link sentinel_;
};

/// Removes `link` from its list. If this leaves the list empty, returns the sentinel of the list,
/// otherwise null.
inline const Link* unlink(Link& link) noexcept {
  link.prev->next = link.next;
  link.next->prev = link.prev;
  return link.prev == link.next ? link.prev : nullptr;
}

/// Inserts `link` behind `before`, in the list of `before`. If `before` is the sentinel, `link`
/// becomes the first link. Requires: `link` is in no list.
inline void insert_behind(Link& before, Link& link) noexcept {
  link.prev = &before;
  link.next = before.next;
  before.next->prev = &link;
  before.next = &link;
}

/// Calls visit(Link&) for each link in order. `visit` may remove this link, but no other link.
template <class Visit>
void for_each_link(const LinkList& list, const Visit& visit) {
  for (Link* link = list.sentinel().next; link != &list.sentinel();) {
    Link* const next = link->next;
    visit(*link);
    link = next;
  }
}

}  // namespace detent::internal
