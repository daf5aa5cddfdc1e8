#!/usr/bin/env python3
"""Tests Patience with simulated processes."""

import os
import unittest

from patience import Patience, scheduled, share_of


class Played:
    """A thread on a machine that gives it a share of the processor time that it wants."""

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
    def test_a_second_counts_fully_for_a_process_that_never_waits(self):
        played = Played()
        patience = played.patience(10)
        played.pass_time(9.9, share=1)
        self.assertFalse(patience.is_over())
        played.pass_time(0.2, share=1)
        self.assertTrue(patience.is_over())

    def test_the_limit_lasts_longer_while_the_processes_wait(self):
        played = Played()
        patience = played.patience(10)
        for _ in range(99):
            played.pass_time(1, share=0.1)
            self.assertFalse(patience.is_over())
        played.pass_time(2, share=0.1)
        self.assertTrue(patience.is_over())

    def test_a_second_counts_fully_for_an_idle_process(self):
        played = Played()
        patience = played.patience(10)
        played.pass_time(11, share=0, wanted=0)
        self.assertTrue(patience.is_over())

    def test_threads_count_while_they_exist(self):
        before = {"stays": (100, 0), "goes": (7, 7)}
        after = {"stays": (200, 0), "comes": (0, 300)}
        self.assertEqual(share_of(before, after), 0.25)

    def test_the_kernel_reports_times_of_this_process(self):
        own = scheduled([os.getpid()])
        if not own:
            self.skipTest("this kernel does not")
        ran, waited = next(iter(own.values()))
        self.assertGreater(ran, 0)
        self.assertGreaterEqual(waited, 0)

    def test_the_kernel_reports_no_times_of_an_ended_process(self):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(scheduled([child]), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
