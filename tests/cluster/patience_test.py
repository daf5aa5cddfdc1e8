#!/usr/bin/env python3
"""Patience with processes that are played."""

import os
import unittest

from patience import Patience, scheduled, share_of


class Played:
    """One thread, on a machine that gives it a share of the processor time that it wants."""

    def __init__(self):
        self.now = 0.0
        self.times = {"thread": (0, 0)}

    def pass_time(self, seconds, share, wanted=0.1):
        self.now += seconds
        ran, waited = self.times["thread"]
        wish = seconds * wanted * 1e9
        self.times = {"thread": (ran + wish * share, waited + wish * (1 - share))}

    def patience(self, seconds):
        return Patience(seconds, lambda: [1], clock=lambda: self.now, look=lambda _: self.times)


class PatienceTest(unittest.TestCase):
    def test_a_second_is_a_second_for_who_runs_whenever_it_wants(self):
        played = Played()
        patience = played.patience(10)
        played.pass_time(9.9, share=1)
        self.assertFalse(patience.is_over())
        played.pass_time(0.2, share=1)
        self.assertTrue(patience.is_over())

    def test_it_lasts_as_much_longer_as_the_processes_are_kept_waiting(self):
        played = Played()
        patience = played.patience(10)
        for _ in range(99):
            played.pass_time(1, share=0.1)
            self.assertFalse(patience.is_over())
        played.pass_time(2, share=0.1)
        self.assertTrue(patience.is_over())

    def test_who_wants_nothing_is_kept_from_nothing(self):
        played = Played()
        patience = played.patience(10)
        played.pass_time(11, share=0, wanted=0)
        self.assertTrue(patience.is_over())

    def test_threads_that_come_and_go_count_while_they_are_there(self):
        before = {"stays": (100, 0), "goes": (7, 7)}
        after = {"stays": (200, 0), "comes": (0, 300)}
        self.assertEqual(share_of(before, after), 0.25)

    def test_the_kernel_tells_of_this_process(self):
        own = scheduled([os.getpid()])
        if not own:
            self.skipTest("this kernel does not")
        ran, waited = next(iter(own.values()))
        self.assertGreater(ran, 0)
        self.assertGreaterEqual(waited, 0)

    def test_of_a_process_that_has_ended_nothing_is_told(self):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(scheduled([child]), {})


if __name__ == "__main__":
    unittest.main()
