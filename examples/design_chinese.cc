// The Chinese texts of the figures: a table of English and Chinese texts, and the patterns of the
// texts with ticks and levels.
#include "design_chinese.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <variant>

#include "design_levels.h"

namespace design {
namespace {

struct Translation {
  const char* english;
  const char* chinese;
};

// clang-format off: a row has both texts of a sentence
constexpr Translation kTexts[]{
    {"schedule, advance and cancel on a hierarchical wheel",
     "层级时间轮上的 schedule、advance 和 cancel"},
    {"Each moment is a call. Only schedule and advance move timers.",
     "每个时刻是一次调用。只有 schedule 和 advance 移动定时器。"},
    {"schedule(320) and schedule(350) at tick 117", "刻度 117：schedule(320) 和 schedule(350)"},
    {"advance(300)", "advance(300)"},
    {"cancel(320)", "cancel(320)"},
    {"advance(350)", "advance(350)"},
    {"answer, and next_wakeup()", "返回值，以及 next_wakeup()"},
    {"true, true", "true, true"},
    {"true", "true"},
    {"no timer fires", "没有定时器触发"},
    {"350 fires", "350 触发"},
    {"next_wakeup() = 300", "next_wakeup() = 300"},
    {"next_wakeup() = 320", "next_wakeup() = 320"},
    {"next_wakeup() = 350", "next_wakeup() = 350"},
    {"next_wakeup() = none", "next_wakeup() = 无"},
    {"Both timers are more than 60 ticks ahead, so they overflow to slot 5 of the minutes. "
     "The program can sleep until this slot begins.",
     "两个定时器都在 60 个刻度以外，所以溢出到分钟层的第 5 槽。程序可以睡到这个槽的起点。"},
    {"The minute hand reaches slot 5. Both timers cascade to the seconds: to slots 20 and 50.",
     "分针走到第 5 槽。两个定时器降级到秒层，分别进入第 20 槽和第 50 槽。"},
    {"The timer leaves its list, and the slot is empty. No hand moves. The next wake-up is "
     "later.",
     "定时器离开链表，它的槽变空。指针不动。下一次唤醒推迟了。"},
    {"The second hand reaches slot 50, and the timer fires. The wheel is empty and needs no "
     "wake-up.",
     "秒针走到第 50 槽，定时器触发。时间轮空了，不再需要唤醒。"},
    {"A simple wheel of 256 slots", "256 个槽的简单时间轮"},
    {"One ring. The timer for tick 350 is in slot 94 until the hand comes there.",
     "一个环。刻度 350 的定时器在第 94 槽，直到指针走到那里。"},
    {"256 slots of 1 tick", "256 个槽，每槽 1 个刻度"},
    {"350 is 233 ticks ahead, which is within the span of 256. Its slot is 350 mod 256 = 94. "
     "A timer for tick 606 has the same slot, and the wheel refuses it.",
     "350 在 233 个刻度之后，没有超出跨度 256。它的槽是 350 mod 256 = 94。刻度 606 "
     "的定时器也对应这个槽，时间轮拒绝它。"},
    {"The hand begins its second round at slot 0. The timer stays in slot 94. The timer for "
     "tick 200 has fired.",
     "指针从第 0 槽开始第二圈。定时器仍在第 94 槽。刻度 200 的定时器已经触发。"},
    {"The hand is at slot 93, one slot before the timer.", "指针在第 93 槽，离定时器还有一个槽。"},
    {"The hand reaches slot 94, and the timer fires at its exact tick.",
     "指针走到第 94 槽，定时器恰好在自己的刻度触发。"},
    {"A hashed wheel of 64 slots", "64 个槽的哈希时间轮"},
    {"One ring. Timers of different rounds share slot 30: 158, 350 and 414.",
     "一个环。不同轮次的定时器共用第 30 槽：158、350 和 414。"},
    {"64 slots of 1 tick", "64 个槽，每槽 1 个刻度"},
    {"350 mod 64 = 30. The hand comes to slot 30 at ticks 158, 222, 286 and 350, so the timer "
     "has 3 rounds left. Three timers share the slot.",
     "350 mod 64 = 30。指针在刻度 158、222、286 和 350 走到第 30 槽，所以定时器的剩余轮次是 "
     "3。三个定时器共用这个槽。"},
    {"The hand is at slot 30. The timer for tick 158 fires. The timers for 350 and 414 belong "
     "to later rounds and stay.",
     "指针在第 30 槽。刻度 158 的定时器触发。350 和 414 的定时器属于以后的轮次，留在槽里。"},
    {"The hand is at slot 0. The timer for tick 350 has 1 round left: the hand passes its "
     "slot once more, at tick 286.",
     "指针在第 0 槽。刻度 350 的定时器的剩余轮次是 1：指针还要在刻度 286 经过它的槽一次。"},
    {"The hand is at slot 30 in the right round. The timer fires, and 414 stays.",
     "指针在第 30 槽，轮次也对。定时器触发，414 留在槽里。"},
    {"A hierarchical wheel of 60 seconds, 60 minutes and 24 hours",
     "60 秒、60 分、24 小时的层级时间轮"},
    {"Three rings, like the hands of a clock. A tick is a second.",
     "三个环，像钟表的指针。一个刻度是一秒。"},
    {"seconds", "秒"},
    {"minutes", "分"},
    {"hours", "时"},
    {"days", "日"},
    {"months", "月"},
    {"years", "年"},
    {"350 is 00:05:50. The seconds reach only 60 ticks ahead, so the timer overflows to the "
     "minutes: slot 350 / 60 = 5. The next wake-up for it is tick 300.",
     "350 是 00:05:50。秒层只覆盖 60 个刻度，所以定时器溢出到分钟层，第 350 / 60 = 5 "
     "槽。为它的下一次唤醒是刻度 300。"},
    {"The minute hand is at slot 4. The timer stays in slot 5.",
     "分针在第 4 槽。定时器仍在第 5 槽。"},
    {"The minute hand reaches slot 5, and the slot cascades: the timer moves to slot 50 of "
     "the seconds.",
     "分针走到第 5 槽，这个槽降级：定时器移到秒层的第 50 槽。"},
    {"The second hand reaches slot 50, and the timer fires.", "秒针走到第 50 槽，定时器触发。"},
    {"Levels of 20 buckets, and a delay queue of buckets", "每层 20 个槽，以及存放槽的延迟队列"},
    {"Three levels, and the queue of the buckets that are not empty.",
     "三层，以及非空的槽的队列。"},
    {"delay queue of buckets: expiration, level and slot",
     "延迟队列，其元素是槽：槽的到期时刻、层和槽"},
    {"350 is 233 ticks ahead: beyond the interval of 20, within the overflow wheel's interval "
     "of 400. Its bucket is 350 / 20 = 17, with the expiration 17 · 20 = 340.",
     "350 在 233 个刻度之后：超出间隔 20，在溢出轮的间隔 400 之内。它的槽是 350 / 20 = "
     "17，槽的到期时刻是 17 · 20 = 340。"},
    {"The bucket of tick 125 has expired. The thread sleeps in the delay queue until 340. "
     "Tick 256 is an ordinary moment, without a wake-up.",
     "刻度 125 的槽已经到期。线程在延迟队列里睡到 340。刻度 256 没有什么特别，也没有唤醒。"},
    {"The bucket expires. Its timer is reinserted: 10 ticks are left, so it goes to level 0, "
     "slot 350 mod 20 = 10, with the expiration 350.",
     "槽到期。它的定时器重新放入：还剩 10 个刻度，所以进入第 0 层第 350 mod 20 = 10 "
     "槽，槽的到期时刻是 350。"},
    {"The bucket of level 0 expires, and the timer fires.", "第 0 层的槽到期，定时器触发。"},
    {"A wheel that makes its levels on demand, with 10 slots per level",
     "按需创建层的时间轮，每层 10 个槽"},
    {"The wheel begins with one level and makes further levels for far timers.",
     "时间轮开始时只有一层，为远期定时器创建更多的层。"},
    {"Tick 117, before", "刻度 117，之前"},
    {"One level reaches 10 ticks ahead.", "一层覆盖 10 个刻度。"},
    {"Tick 117, after", "刻度 117，之后"},
    {"350 is 233 ticks ahead. Two levels are made: level 2 reaches 1\u00a0000 ticks. The "
     "timer goes to its slot 350 / 100 = 3.",
     "350 在 233 个刻度之后。创建两层：第 2 层覆盖 1\u00a0000 个刻度。定时器放进它的第 350 / 100 = "
     "3 槽。"},
    {"The timer stays. Its slot begins at tick 300.", "定时器不动。它的槽从刻度 300 开始。"},
    {"The slot cascades. 50 ticks are left, so the timer moves to level 1, slot 350 / 10 mod "
     "10 = 5.",
     "这个槽降级。还剩 50 个刻度，所以定时器移到第 1 层第 350 / 10 mod 10 = 5 槽。"},
    {"Tick 300, a timer for 12\u00a0345", "刻度 300，12\u00a0345 的定时器"},
    {"Two more levels are made for one far timer. The existing timers do not move.",
     "为一个远期定时器再创建两层。已有的定时器不移动。"},
    {"The slot of level 1 begins at tick 350. The timer moves to level 0 and fires at this "
     "tick. The wheel keeps its five levels.",
     "第 1 层的槽从刻度 350 开始。定时器移到第 0 层，并在这个刻度触发。时间轮保留五层。"},
    {"A wheel of seconds, minutes, hours, days, months and years",
     "秒、分、时、日、月、年的时间轮"},
    {"Six levels with 286 slots reach 100 years of 360 days.",
     "六层，286 个槽，覆盖 100 个 360 天的年。"},
    {"350 goes to minute 5, as on a wheel of three levels. 830 days, 10:20:30 from the start "
     "is tick 71\u00a0749\u00a0230: it goes to year 2.",
     "350 放进第 5 分，与三层的时间轮相同。从起点算 830 天 10:20:30 是刻度 "
     "71\u00a0749\u00a0230：放进第 2 年。"},
    {"Only a slot of seconds begins at tick 256. The timer for 350 stays in minute 5 until "
     "tick 300.",
     "刻度 256 只是一个秒槽的起点。350 的定时器在第 5 分等到刻度 300。"},
    {"Tick 62\u00a0208\u00a0000: year 2 begins, and its slot cascades. The far timer moves to "
     "month 27 of the wheel's count, which is slot 27 mod 12 = 3.",
     "刻度 62\u00a0208\u00a0000：第 2 年开始，它的槽降级。远期定时器移到时间轮计数的第 27 月，即第 "
     "27 mod 12 = 3 槽。"},
    {"Tick 69\u00a0984\u00a0000: the month begins. The timer moves to slot 830 mod 30 = 20 of "
     "the days.",
     "刻度 69\u00a0984\u00a0000：这个月开始。定时器移到日层的第 830 mod 30 = 20 槽。"},
    {"The day begins. The timer moves to hour 10.", "这一天开始。定时器移到第 10 时。"},
    {"At 10:00:00 the timer moved to minute 20, and now it moves to second 30. It has moved "
     "five times in 27 months, and fires at its exact second.",
     "10:00:00 时，定时器移到第 20 分；现在移到第 30 秒。27 "
     "个月里它移动了五次，并恰好在自己的那一秒触发。"},
    {"Levels by digits: three of the eight levels of a TimerWheel",
     "按数位分层：TimerWheel 八层中的三层"},
    {"Levels of 256 slots. The level is the highest digit in which the deadline differs from "
     "now.",
     "每层 256 个槽。到期时刻与现在最高的不同数位就是层。"},
    {"Tick 117 = digits 0 · 117", "刻度 117 = 数位 0 · 117"},
    {"Tick 255 = digits 0 · 255", "刻度 255 = 数位 0 · 255"},
    {"Tick 256 = digits 1 · 0", "刻度 256 = 数位 1 · 0"},
    {"Tick 350 = digits 1 · 94", "刻度 350 = 数位 1 · 94"},
    {"350 = digits 1 · 94. The highest digit that differs from 0 · 117 is digit 1, so the "
     "level is 1 and the slot is 1: it stands for the ticks 256 to 511.",
     "350 = 数位 1 · 94。与 0 · 117 最高的不同数位是第 1 位，所以是第 1 层第 1 槽，这个槽代表刻度 "
     "256 到 511。"},
    {"The timer for tick 130 has fired. Level and slot of 350 are still right, although time "
     "has moved.",
     "刻度 130 的定时器已经触发。时间前进了，350 的层和槽仍然正确。"},
    {"Time enters slot 1 of level 1, and the slot cascades: digit 1 is equal now, so 350 goes "
     "to level 0, slot 94, and 400 to slot 144.",
     "时间进入第 1 层的第 1 槽，这个槽降级：第 1 位现在相同了，所以 350 移到第 0 层的第 94 槽，400 "
     "移到第 144 槽。"},
    {"The bit of slot 94 is the next bit that is set: the timer fires. 400 stays.",
     "下一个置位的是第 94 槽的位：定时器触发。400 留在槽里。"},
    {"A wheel and a store", "时间轮与存储"},
    {"The store has every task. The wheel has the tasks that are due soon.",
     "存储里有全部任务，时间轮里是即将到期的任务。"},
    {"store: due times (dashed: not in the wheel)", "存储：到期时间（虚线：不在时间轮里）"},
    {"wheel (128 slots)", "时间轮（128 槽）"},
    {"The scan of tick 64 loaded the tasks up to 64 + 128 = 192. The task for 350 is only in "
     "the store.",
     "刻度 64 的扫描装载了 64 + 128 = 192 为止的任务。350 的任务只在存储里。"},
    {"The scan loads the tasks up to 320. The task for 180 has fired; it was removed from the "
     "store after that.",
     "扫描装载 320 为止的任务。180 的任务已经触发，之后从存储里删除。"},
    {"The scan loads the tasks up to 384. The task for 350 enters the wheel: slot 350 mod 128 "
     "= 94. Its record stays in the store.",
     "扫描装载 384 为止的任务。350 的任务进入时间轮：第 350 mod 128 = 94 槽。它的记录留在存储里。"},
    {"The timer fires. The record is still in the store. The server removes it after a worker "
     "has reported the task as complete, so the task survives a crash at this moment.",
     "定时器触发。记录还在存储里。消费者报告任务完成之后，服务器才删除记录，所以此刻崩溃也不会丢失"
     "任务。"},
    {"A wheel with an external scheduler", "带外部调度器的时间轮"},
    {"A task moves to the external scheduler and back. At each moment exactly one copy is "
     "valid.",
     "任务移到外部调度器，再移回来。每个时刻恰好有一份副本有效。"},
    {"external scheduler (dashed: an invalid copy)", "外部调度器（虚线：无效的副本）"},
    {"the server's store", "服务器的存储"},
    {"marks in the server's store", "服务器存储里的标记"},
    {"mark on 350", "350 的标记"},
    {"The server accepts the task and stores it. The task is due in 233 ticks. A task that is "
     "due in more than 200 ticks is far.",
     "服务器接受任务并保存。任务在 233 个刻度之后到期。200 个刻度之后才到期的任务是远期任务。"},
    {"Tick 128, copied", "刻度 128，已复制"},
    {"A step of the server finds the far task. The step sets a mark, and then stores a copy "
     "in the external scheduler. The mark makes the copy invalid.",
     "服务器的一步发现这个远期任务：先设标记，再把副本存入外部调度器。有标记，所以副本无效。"},
    {"Tick 128, handed over", "刻度 128，已移交"},
    {"One durable write removes the task and the mark from the server's store. Because of "
     "this write, the copy in the external scheduler becomes valid.",
     "一次落盘，从服务器的存储里删除任务和标记。这次写入使外部调度器里的副本生效。"},
    {"Tick 256, handed back", "刻度 256，已交还"},
    {"94 ticks are left, so the task is near. One durable write stores the task in the "
     "server's store and sets the mark.",
     "还剩 94 个刻度，任务已是近期。一次落盘，把任务写入服务器的存储，并设标记。"},
    {"Tick 256, cleaned up", "刻度 256，已清理"},
    {"The step removes the copy from the external scheduler, and then the mark. The task "
     "waits in the store, and later in the wheel.",
     "这一步删除外部调度器里的副本，再删除标记。任务在存储里等待，以后在时间轮里等待。"},
    {"The wheel fires the task. The task was in the server's store for the last 94 ticks. An "
     "outage of the external scheduler in this time has no effect.",
     "时间轮触发任务。最后 94 个刻度里，任务在服务器的存储里，所以外部调度器这时停机没有影响。"},
    {"The same timers in a heap, a tree and a list", "同样的定时器在堆、树和链表里"},
    {"Eight timers, scheduled in the order 900, 350, 400, 200, 1000, 130, 500, 360.",
     "八个定时器，安排的次序是 900、350、400、200、1000、130、500、360。"},
    {"4-ary heap, as its array", "四叉堆，按数组的顺序"},
    {"red-black tree, in order", "红黑树，按到期时刻的顺序"},
    {"sorted list", "有序链表"},
    {"The heap keeps each element before its four children: the element at index 0 before "
     "those at 1 to 4, and index 1 before 5 to 7. Tree and list keep everything in order.",
     "堆让每个元素排在它的四个子元素之前：下标 0 在 1 到 4 之前，下标 1 在 5 到 7 "
     "之前。树和链表让全部元素有序。"},
    {"130 and 200 have fired. Each removal moved other elements of the heap. Tick 256 itself "
     "has no meaning for these queues.",
     "130 和 200 已经触发。每次取出都移动了堆里的别的元素。刻度 256 本身对这些队列没有意义。"},
    {"350 is first in all three queues, so the thread sleeps until exactly tick 350.",
     "350 在三个队列里都排第一，所以线程恰好睡到刻度 350。"},
    {"The first element fires and leaves. The next is 360.",
     "第一个元素触发并离开。下一个是 360。"},
    {"The timer wheel of Linux since version 4.8", "Linux 4.8 起的时间轮"},
    {"Levels of 64 buckets that do not cascade. A far timer fires a little late.",
     "每层 64 个槽，不降级。远期定时器触发得稍晚。"},
    {"350 is 233 jiffies ahead, so its level is 1, with buckets of 8 jiffies. The expiry is "
     "rounded up: 350 / 8 + 1 = 44, which is jiffy 352.",
     "350 在 233 个 jiffy 之后，所以是第 1 层，每槽 8 个 jiffy。到期时刻向上取整：350 / 8 + 1 = "
     "44，即 jiffy 352。"},
    {"No bucket moves. A timer stays in its bucket until it fires or is cancelled.",
     "没有槽移动。定时器留在它的槽里，直到触发或取消。"},
    {"The deadline has passed, and the timer waits for its bucket.",
     "到期时刻已过，定时器等待它的槽。"},
    {"The bucket expires, and the timer fires 2 jiffies late. It never moved.",
     "槽到期，定时器晚 2 个 jiffy 触发。它从未移动。"},
};
// clang-format on

bool has_letters(const std::string& words) {
  return std::any_of(words.begin(), words.end(),
                     [](char letter) { return std::isalpha(static_cast<unsigned char>(letter)); });
}

// The numbers of two and more digits. Smaller numbers can be words.
std::set<std::string> numbers_of(const std::string& words) {
  std::set<std::string> numbers;
  std::string number;
  for (const char letter : words + ' ') {
    if (std::isdigit(static_cast<unsigned char>(letter))) {
      number += letter;
    } else {
      if (number.size() > 1) numbers.insert(number);
      number.clear();
    }
  }
  return numbers;
}

// "Tick 300, 00:05:00" and "level 0 (1)" have numbers that the table does not know.
std::string chinese(const std::string& english) {
  const auto* row = std::find_if(std::begin(kTexts), std::end(kTexts),
                                 [&](const Translation& text) { return english == text.english; });
  if (row != std::end(kTexts)) {
    require(numbers_of(english) == numbers_of(row->chinese), "the numbers of: " + english);
    return row->chinese;
  }
  const auto after = [&english](const char* word) {
    return english.rfind(word, 0) == 0 ? english.substr(std::strlen(word)) : std::string("none");
  };
  if (const std::string time = after("Tick "); !has_letters(time)) {
    const std::size_t comma = time.find(", ");
    if (comma == std::string::npos) return "刻度 " + time;
    return "刻度 " + time.substr(0, comma) + "，" + time.substr(comma + 2);
  }
  if (const std::string level = after("level "); !has_letters(level)) {
    return "第 " + level.substr(0, 1) + " 层" + level.substr(1);
  }
  require(!has_letters(english), "design_chinese.cc has a text for: " + english);
  return english;
}

void translate(LevelPicture& level) { level.name = chinese(level.name); }
void translate(Strip& strip) { translate(strip.level); }
void translate(Dials& dials) {
  for (LevelPicture& level : dials.levels) translate(level);
}
void translate(Boxes& row) {
  row.name = chinese(row.name);
  for (Box& box : row.boxes) box.text = chinese(box.text);
}

}  // namespace

Figure in_chinese(Figure figure) {
  figure.title = chinese(figure.title);
  figure.description = chinese(figure.description);
  for (Moment& moment : figure.moments) {
    moment.title = chinese(moment.title);
    moment.caption = chinese(moment.caption);
    for (PictureRow& row : moment.rows) {
      std::visit([](auto& kind) { translate(kind); }, row);
    }
  }
  return figure;
}

}  // namespace design
