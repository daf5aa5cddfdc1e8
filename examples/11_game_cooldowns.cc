// Cool-downs and buffs of a game. The timers of a battle are a group: a dialogue pauses all of
// them, slow motion slows all of them down, and the end of the battle cancels the rest. Time is
// simulated. A game uses a detent::Scheduler.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "detent/simulation.h"
#include "detent/timer_group.h"

using namespace std::chrono_literals;

struct Hero {
  int strength = 10;
  int health = 50;
  bool may_strike = true;
};

int main() {
  detent::Simulation world(/*seed=*/1);
  detent::TimerGroup battle(world.scheduler());
  Hero hero;

  const auto strike = [&] {  // a strike blocks the next one for 4 seconds
    hero.may_strike = false;
    battle.schedule_after(4s, [&] { hero.may_strike = true; }).release();
  };
  hero.strength += 5;  // a potion, for 10 seconds
  const auto potion = battle.schedule_after(10s, [&] { hero.strength -= 5; });
  const auto poison = battle.schedule_every({.period = 1s}, [&] { --hero.health; });

  strike();
  world.run_for(3s);
  const bool cools_down = !hero.may_strike;

  battle.pause();  // during a dialogue, no timer runs
  world.run_for(5min);
  const bool nothing_changed = hero.health == 47 && hero.strength == 15 && !hero.may_strike;

  battle.resume();
  world.run_for(2s);  // 5 seconds of battle
  const bool may_strike_again = hero.may_strike;

  battle.set_rate(0.25);  // slow motion
  world.run_for(8s);      // 7 seconds of battle
  const bool potion_lasts = hero.strength == 15 && hero.health == 43;
  battle.set_rate(1);
  world.run_for(3s);  // 10 seconds
  const bool potion_is_over = hero.strength == 10;

  const auto cancelled = battle.cancel_all();  // the battle is won
  world.run_for(1h);
  std::printf("health %d, strength %d, %zu timer cancelled\n", hero.health, hero.strength,
              cancelled);
  const bool as_told = cools_down && nothing_changed && may_strike_again && potion_lasts &&
                       potion_is_over && cancelled == 1 && hero.health == 40;
  return as_told ? EXIT_SUCCESS : EXIT_FAILURE;
}
