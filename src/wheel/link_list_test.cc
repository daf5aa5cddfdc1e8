#include "detent/internal/link_list.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace detent::internal {
namespace {

std::vector<const Link*> links_of(const LinkList& list) {
  std::vector<const Link*> links;
  for (const Link* link = list.sentinel().next; link != &list.sentinel(); link = link->next) {
    EXPECT_EQ(link->next->prev, link);
    links.push_back(link);
  }
  return links;
}

TEST(LinkList, GivesBackInTheOrderOfPushing) {
  std::array<Link, 3> links;
  LinkList list;
  for (Link& link : links) list.push_back(link);

  EXPECT_EQ(&list.pop_front(), &links[0]);
  EXPECT_EQ(&list.pop_front(), &links[1]);
  EXPECT_EQ(&list.pop_front(), &links[2]);
  EXPECT_TRUE(list.empty());
}

TEST(LinkList, AppendMovesAllLinksBehindTheOwnLinks) {
  std::array<Link, 4> links;
  LinkList list;
  LinkList other;
  list.push_back(links[0]);
  list.push_back(links[1]);
  other.push_back(links[2]);
  other.push_back(links[3]);

  list.append(other);

  EXPECT_EQ(links_of(list), (std::vector<const Link*>{&links[0], &links[1], &links[2], &links[3]}));
  EXPECT_TRUE(other.empty());
}

TEST(LinkList, AppendWorksWithEmptyLists) {
  Link link;
  LinkList list;
  LinkList other;
  list.append(other);
  EXPECT_TRUE(list.empty());

  other.push_back(link);
  list.append(other);

  EXPECT_EQ(links_of(list), std::vector<const Link*>{&link});
  EXPECT_EQ(links_of(other), std::vector<const Link*>{});
}

TEST(LinkList, UnlinkNamesTheListThatItLeavesEmpty) {
  std::array<Link, 3> links;
  LinkList list;
  for (Link& link : links) list.push_back(link);

  EXPECT_EQ(unlink(links[1]), nullptr);
  EXPECT_EQ(links_of(list), (std::vector<const Link*>{&links[0], &links[2]}));
  EXPECT_EQ(unlink(links[0]), nullptr);
  EXPECT_EQ(unlink(links[2]), &list.sentinel());
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace detent::internal
