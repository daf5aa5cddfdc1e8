// Circular doubly linked lists of links that live inside other objects.
//
// A list is one link that points at itself when empty (the sentinel), so taking a link out needs
// neither the list nor a branch for its ends. Timers are kept this way because cancelling one must
// be O(1) from the timer alone, and because joining two lists is O(1) too.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

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

/// Several lists that are emptied in turn, one link of each at a time.
///
/// Walking one long list waits for memory at every link, since only a link tells where the next one
/// is. Here the next links of all chains are fetched while one is worked on. Owns none of its
/// links. Thread-compatible.
class LinkChains {
 public:
  static constexpr unsigned kCount = 8;

  /// True when every chain is empty.
  bool empty() const noexcept {
    if (live_ == 0) return true;
    for (const LinkList& chain : chains_) {
      if (!chain.empty()) return false;
    }
    return true;
  }

  /// Moves every link of `list` to the end of one chain. Requires: chain < kCount.
  void append(unsigned chain, LinkList& list) noexcept {
    if (list.empty()) return;
    chains_[chain].append(list);
    live_ |= 1u << chain;
  }

  /// Takes out the first link of the chain whose turn it is. Returns: null when all are empty.
  Link* pop() noexcept {
    while (live_ != 0) {
      if (this_round_ == 0) this_round_ = live_;
      const auto chain = static_cast<unsigned>(std::countr_zero(this_round_));
      this_round_ &= this_round_ - 1;
      if (!chains_[chain].empty()) {
        Link& link = chains_[chain].pop_front();
        // The new first link arrived while the other chains had their turns; fetch the second.
        __builtin_prefetch(chains_[chain].sentinel().next->next, /*for writing:*/ 1);
        return &link;
      }
      live_ &= ~(1u << chain);
    }
    this_round_ = 0;
    return nullptr;
  }

  const std::array<LinkList, kCount>& chains() const noexcept { return chains_; }

 private:
  std::array<LinkList, kCount> chains_;
  std::uint32_t live_ = 0;        // holds the chains that are not empty, perhaps others
  std::uint32_t this_round_ = 0;  // those of them that have not had their turn yet
};

/// Takes `link` out of the list it is in.
/// Returns: the sentinel of that list when this leaves it empty, else null.
inline const Link* unlink(Link& link) noexcept {
  link.prev->next = link.next;
  link.next->prev = link.prev;
  return link.prev == link.next ? link.prev : nullptr;
}

}  // namespace detent::internal
