#!/usr/bin/env python3
"""The checker of histories, on histories that are planted: each rule is broken once and must be
reported, alone, and a history in which nothing is wrong must be found clean.
"""

import unittest

from history import TIMED, Fault, History, check


def good():
    """Task 256 is put, handed out and completed; all within the first 300 ms."""
    history = History()
    history.add("put", 0, 10, "done", 256, "a", "q", "k", due=100)
    history.add("handout", 20, 111, "done", 256, "a", "q", lease="1-1", at=110, due=100, until=4110)
    history.add("complete", 200, 210, "done", 256, "a", "q", lease="1-1")
    return history


class Planted(unittest.TestCase):
    def found(self, history, *rules):
        report = check(history)
        self.assertEqual([text.split(":")[0] for text in report.violations], list(rules))
        return report

    def test_nothing_is_found_where_nothing_is_wrong(self):
        self.assertEqual(self.found(good()).figures["duplicates"], 0)

    def test_a_task_that_neither_ended_nor_is_there(self):
        history = good()
        history.add("put", 0, 10, "done", 512, "b", "q", due=100)
        self.found(history, "lost")
        history.add("read", 900, 910, "done", 512, "b", "q")
        self.found(history)

    def test_a_task_that_is_answered_404_though_nothing_ended_it(self):
        history = good()
        history.add("cancel", 150, 160, "missing", 256, "a", "q")
        self.found(history, "lost")

    def test_404_after_a_cancel_of_which_nothing_was_heard_is_fine(self):
        history = History()
        history.add("put", 0, 10, "done", 256, "a", "q", due=5_000)
        history.add("cancel", 100, 110, "unknown", 256, "a", "q")
        history.add("cancel", 200, 210, "missing", 256, "a", "q")
        self.found(history)

    def test_a_handout_before_the_due_time(self):
        history = good()
        history.events[1].at = 99
        self.found(history, "early")

    def test_a_handout_before_the_time_a_task_was_moved_to(self):
        history = good()
        history.add("move", 12, 14, "done", 256, "a", "q", due=5_000)
        self.found(history, "early")

    def test_a_move_that_may_have_been_done_proves_nothing(self):
        history = good()
        history.add("move", 12, 14, "unknown", 256, "a", "q", due=5_000)
        self.found(history)

    def test_a_retry_before_the_delay_of_the_fail(self):
        history = good()
        history.events[2].kind = "fail"
        history.events[2].due = 1_200
        history.add("handout", 205, 301, "done", 256, "a", "q", lease="1-2", at=300, due=250,
                    until=4300)
        history.add("complete", 400, 410, "done", 256, "a", "q", lease="1-2")
        self.found(history, "early")

    def test_a_completed_task_that_comes_again_even_after_a_fault(self):
        history = good()
        history.faults.append(Fault("kill", 220, 220, 220))
        history.add("handout", 20, 5_001, "done", 256, "a", "q", lease="2-1", at=5_000, due=100,
                    until=9_000)
        self.found(history, "came again")

    def test_a_cancelled_task_that_is_handed_out(self):
        history = History()
        history.add("put", 0, 10, "done", 256, "a", "q", due=50)
        history.add("cancel", 20, 30, "done", 256, "a", "q")
        history.add("handout", 20, 101, "done", 256, "a", "q", lease="1-1", at=100, due=50,
                    until=4_000)
        self.found(history, "came again")

    def test_a_task_that_is_completed_twice(self):
        history = good()
        history.add("complete", 205, 215, "done", 256, "a", "q", lease="1-1")
        self.found(history, "ended twice")

    def test_two_open_leases_without_a_fault(self):
        history = good()
        history.add("handout", 20, 151, "done", 256, "a", "q", lease="1-9", at=150, due=100,
                    until=4150)
        self.found(history, "stale write", "two leases")

    def test_two_open_leases_after_a_fault_that_loses_them_are_counted(self):
        history = good()
        history.events[2].start, history.events[2].end = 2_000, 2_010
        history.events[2].outcome = "conflict"
        history.faults.append(Fault("kill", 150, 150, 150))
        history.add("handout", 20, 1_001, "done", 256, "a", "q", lease="2-9", at=1_000, due=100,
                    until=5_000)
        history.add("complete", 1_100, 1_110, "done", 256, "a", "q", lease="2-9")
        figures = self.found(history).figures
        self.assertEqual((figures["duplicates"], figures["leases open at faults"]), (1, 1))
        history.faults[0].shards = {1}
        self.found(history, "lease lost", "two leases")

    def test_a_lease_that_is_refused_though_it_is_good(self):
        history = good()
        history.events[2].outcome = "conflict"
        history.add("read", 900, 910, "done", 256, "a", "q")
        self.found(history, "lease lost")
        history.faults.append(Fault("stop", 150, 160))
        self.found(history, "lease lost")
        history.faults.append(Fault("kill", 150, 150, 150))
        self.found(history)

    def test_a_lease_that_is_refused_after_an_answer_was_lost_is_fine(self):
        history = good()
        history.events[2].outcome = "unknown"
        history.add("complete", 300, 310, "conflict", 256, "a", "q", lease="1-1")
        self.found(history)

    def test_a_lease_that_had_run_out_is_no_duplicate(self):
        history = good()
        history.events[2].outcome = "conflict"
        history.events[2].start = history.events[2].end = 6_000
        history.add("handout", 20, 5_001, "done", 256, "a", "q", lease="1-2", at=5_000, due=100,
                    until=9_000)
        history.add("complete", 5_100, 5_110, "done", 256, "a", "q", lease="1-2")
        self.assertEqual(self.found(history).figures["duplicates"], 0)

    def test_a_stale_lease_that_is_accepted(self):
        history = good()
        history.faults.append(Fault("pause", 120, 190, 120))
        history.add("handout", 20, 181, "done", 256, "a", "q", lease="2-1", at=180, due=100,
                    until=4180)
        self.found(history, "stale write")

    def test_one_id_of_two_tasks_and_two_of_one_key(self):
        history = good()
        history.add("put", 0, 10, "done", 256, "b", "q", due=100)
        self.found(history, "one id for two")
        history = good()
        history.add("put", 20, 30, "done", 512, "a", "q", "k", due=100)
        history.add("read", 900, 910, "done", 512, "a", "q")
        self.found(history, "one key, two tasks")

    def test_a_task_nobody_asked_for(self):
        history = good()
        history.add("handout", 20, 151, "done", 512, "z", "q", lease="1-7", at=150, due=100,
                    until=4150)
        self.found(history, "invented")

    def test_a_queue_out_of_order_in_a_quiet_phase(self):
        history = good()
        history.add("put", 1, 11, "done", 512, "b", "q", due=60)
        history.add("handout", 30, 180, "done", 512, "b", "q", lease="1-2", at=170, due=60,
                    until=4170)
        history.add("complete", 200, 210, "done", 512, "b", "q", lease="1-2")
        self.found(history)
        history.quiet.append((-1, 1_000))
        self.found(history, "order")
        # Task 512 may have been in a lease that nobody was told of, and have come back.
        take = history.add("take", 90, 100, "unknown", queue="q")
        self.found(history)
        take.end = 55  # it was not due then
        take.start = 45
        self.found(history, "order")
        for event in history.events:
            event.queue = TIMED
        report = self.found(history, "order")
        self.assertEqual(sorted(report.lateness), [10, 110])


if __name__ == "__main__":
    unittest.main()
