#!/usr/bin/env python3
"""Tests the checker of histories with prepared histories.

Each rule is broken once, and the checker must report exactly this rule. It must report no violation
for a good history. Also tests how a trial records its faults.
"""

import random
import types
import unittest
from unittest import mock

import cluster_test
import losses
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

    def test_a_good_history_has_no_violations(self):
        self.assertEqual(self.found(good()).figures["duplicates"], 0)

    def test_a_task_that_neither_ended_nor_exists(self):
        history = good()
        history.add("put", 0, 10, "done", 512, "b", "q", due=100)
        self.found(history, "lost")
        history.add("read", 900, 910, "done", 512, "b", "q")
        self.found(history)

    def test_a_404_for_a_task_that_has_not_ended(self):
        history = good()
        history.add("cancel", 150, 160, "missing", 256, "a", "q")
        self.found(history, "lost")

    def test_a_404_after_an_unanswered_cancel_is_fine(self):
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

    def test_an_unanswered_move_allows_both_due_times(self):
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

    def test_two_open_leases_after_a_fault_that_voids_them_are_counted(self):
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

    def test_a_valid_lease_that_is_refused(self):
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

    def test_an_expired_lease_is_not_a_duplicate(self):
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

    def test_one_id_for_two_tasks_and_two_ids_for_one_key(self):
        history = good()
        history.add("put", 0, 10, "done", 256, "b", "q", due=100)
        self.found(history, "one id for two")
        history = good()
        history.add("put", 20, 30, "done", 512, "a", "q", "k", due=100)
        history.add("read", 900, 910, "done", 512, "a", "q")
        self.found(history, "one key, two tasks")

    def test_a_task_that_was_not_requested(self):
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
        # Task 512 may have been in a lease whose answer was lost, and have come back.
        take = history.add("take", 90, 100, "unknown", queue="q")
        self.found(history)
        take.end = 55  # the task was not due at that time
        take.start = 45
        self.found(history, "order")
        for event in history.events:
            event.queue = TIMED
        report = self.found(history, "order")
        self.assertEqual(sorted(report.lateness), [10, 110])

    def test_a_lost_lease_is_reported_with_the_last_fault_of_its_shard(self):
        history = good()
        history.events[2].outcome = "conflict"
        history.add("read", 900, 910, "done", 256, "a", "q")
        history.faults += [Fault("stop", 50, 55), Fault("pause", 60, 90, 100)]
        history.faults.append(Fault("kill", 70, 90, 120, frozenset([3])))
        text = self.found(history, "lease lost").violations[0]
        self.assertRegex(text, "50 ms after the start of a pause that voids those of 40 ms")


class Losses(unittest.TestCase):
    """Shard 0 fails at epoch 1. Another node takes it shortly before the first node notices."""

    LOGS = ["""1970-01-01T00:00:00.010Z debug serving a shard shard=0 epoch=1
1970-01-01T00:00:00.150Z debug a shard's store failed; giving up the shard shard=0 epoch=1 cause="x"
1970-01-01T00:00:00.151Z debug the node lost a shard; its task leases are invalid shard=0 epoch=1
1970-01-01T00:00:00.152Z debug a shard is closed shard=0 epoch=1
1970-01-01T00:00:00.300Z debug the node lost a shard; its task leases are invalid shard=5 epoch=7
1970-01-01T00:00:00.4""", "1970-01-01T00:00:00.149Z debug serving a shard shard=0 epoch=2\n"]

    def test_losses_are_read_from_the_logs(self):
        found = losses.losses(self.LOGS)
        self.assertEqual([(one.shard, one.epoch, one.began, one.at) for one in found],
                         [(0, 1, 149, 150), (5, 7, 300, 300)])
        self.assertTrue(found[0].why.endswith('cause="x"'))

    def test_a_loss_voids_only_leases_of_its_epoch(self):
        history = good()
        history.events[2].outcome = "conflict"
        history.add("handout", 20, 181, "done", 256, "a", "q", lease="2-1", at=180, due=100,
                    until=4180)
        history.add("complete", 300, 310, "done", 256, "a", "q", lease="2-1")
        history.faults = losses.as_faults(losses.losses(self.LOGS))
        figures = check(history).figures
        self.assertEqual((figures["duplicates"], figures["faults"], figures["shards lost"]),
                         (1, 0, 2))
        self.assertEqual(check(history).violations, [])
        for lease in ("2-0", "a-1"):  # the epoch in hexadecimal
            history.events[1].lease = history.events[2].lease = lease
            self.assertEqual(len(check(history).violations), 2)

    def test_a_loss_needs_a_fault_or_a_lack_of_processor_time(self):
        found = losses.losses(self.LOGS)[:1]
        shares = losses.Shares(None, None)

        def told(*faults):
            return losses.without_cause(found, faults, shares, lease_ms=10)
        self.assertRegex(told()[0], "lost for nothing: shard 0 at epoch 1, with 100% .* cause=.x.")
        self.assertEqual(told(Fault("postgres", 100, 145)), [])
        self.assertEqual(told(Fault("postgres", 100, 145, shards=frozenset([0]))), [])
        self.assertEqual(len(told(Fault("postgres", 100, 138), Fault("kill", 151, 160),
                                  Fault("pause", 100, 145, shards=frozenset([1])))), 1)
        shares.of = [(100, 128, 0.1), (128, 140, 0.4), (140, 160, 0.6)]
        self.assertEqual(told(), [])
        shares.of = [(100, 128, 0.1), (128, 160, 0.6), (160, 170, 0.1)]
        self.assertEqual(len(told()), 1)


class Faults(unittest.TestCase):
    """Faults that take a long time, as on an overloaded machine."""

    LEASE_MS = 2_000
    LAG_MS = 5_000  # until a node that must stop has stopped

    def setUp(self):
        self.now = 1_000.0
        for name in ("cluster_test.now_ms", "cluster_test.time.sleep"):
            patch = mock.patch(name, side_effect=lambda *_: self.now)
            patch.start()
            self.addCleanup(patch.stop)
        trial = self.trial = cluster_test.Trial.__new__(cluster_test.Trial)
        trial.rng, trial.lease_ms = random.Random(1), self.LEASE_MS
        trial.history, trial.outages = History(), cluster_test.Outages()
        trial.clients, trial.postgres = mock.Mock(), mock.Mock()
        trial.longest = mock.MagicMock()
        trial.shards_of, trial.wait_for_rest = lambda *_: {1}, lambda *_: None
        self.node = mock.Mock(process=types.SimpleNamespace(pid=0))
        self.node.name = "a"
        trial.nodes = [self.node]
        for hit in (self.node.wait_for_exit, self.node.stand_still, self.node.database.cut):
            hit.side_effect = self.lag

    def lag(self):
        self.now += self.LAG_MS
        return 0

    def voids(self, kind):
        with mock.patch("builtins.print"):
            self.trial.do_fault(kind)
        fault = self.trial.history.faults[-1]
        return fault.voids_until - fault.start

    def test_kill_and_pause_void_leases_until_the_node_has_stopped(self):
        self.assertEqual(self.voids("kill"), self.LAG_MS)
        self.assertEqual(self.voids("pause"), self.LAG_MS)

    def test_a_lost_database_voids_leases_for_one_lease_more(self):
        self.assertEqual(self.voids("cut_database"), self.LAG_MS + self.LEASE_MS)
        self.assertEqual(self.voids("postgres"), self.LEASE_MS)

    def test_other_faults_void_no_leases(self):
        self.assertLess(self.voids("stop"), 0)
        self.assertLess(self.voids("cut_nodes"), 0)


if __name__ == "__main__":
    unittest.main()
