#include "bench/wheel/own_contenders.h"

#include "bench/wheel/baseline_queues.h"
#include "bench/wheel/own_queues.h"

namespace detent::bench {

std::vector<Contender> own_contenders() {
  using Drive = HierarchicalWheel::Drive;
  return {
      contender<OwnQueue<TimerWheel>>("TimerWheel"),
      contender<DenseWheelQueue>("DenseWheel", "timers are numbers; b3 in one call for 64"),
      contender<OwnQueue<FifoTimerWheel>>("FifoTimerWheel"),
      contender<SimpleWheelQueue>("SimpleWheel", "65 536 slots"),
      contender<HashedWheelQueue>("HashedWheel", "65 536 slots"),
      contender<HierarchicalWheelQueue<Drive::tickless>>("HierarchicalWheel",
                                                         "levels of 64 slots on demand"),
      contender<HierarchicalWheelQueue<Drive::tick_by_tick>>(
          "HierarchicalTicks", "the same, driven tick by tick instead of from slot to slot"),
      contender<OwnQueue<HeapQueue>>("HeapQueue"),
      contender<OwnQueue<TreeQueue>>("TreeQueue"),
      contender<OwnQueue<ListQueue>>("ListQueue"),
  };
}

std::vector<Contender> baseline_contenders() {
  return {contender<MultimapQueue>("multimap", "and a table of each timer's place in it"),
          contender<NullQueue>("null", "the driver alone")};
}

}  // namespace detent::bench
