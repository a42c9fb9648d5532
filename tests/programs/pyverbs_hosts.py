# SPDX-License-Identifier: BSD-2-Clause
"""Runs tests of rdma-core's pyverbs suite between two hosts, unmodified.

    pyverbs_hosts.py SUITE RESULTS NETNS ADDRESS ONLY OPTION...

The suite makes both players of a test in one process. Here two processes, one
of them in the namespace NETNS (a path) whose address is ADDRESS, run the same
test in step. Of the two players that it makes, the first is real in the one and
the second in the other; what stands for the other one has its numbers and keys,
but neither sends nor polls. Players of the connection manager have a process
each in the suite already: the active one goes to the other namespace.

ONLY is a list of globs over names of tests, with spaces between them. Lines of
RESULTS are as in pyverbs_run.py.
"""
import ctypes
import importlib
import multiprocessing
import os
import random
import sys
import unittest

from pyverbs.addr import GID
from pyverbs.pyverbs_error import PyverbsError

import pyverbs_run

CLONE_NEWNET = 0x40000000
TIME = 30  # seconds in which the other is at the same place


class Other:
    """What stands for an object of the other process."""

    def __init__(self, mine, **theirs):
        self.__dict__.update(theirs, mine=mine)

    def __getattr__(self, name):
        return getattr(self.mine, name)


class Step:
    """This process's end: exchanges, and what is real here."""

    def __init__(self, pipe, first):
        self.pipe = pipe
        self.first = first
        self.reset()

    def reset(self):
        self.made = 0
        self.others = []
        self.serves = None
        self.gid = None
        self.ended = None

    def swap(self, mine):
        self.pipe.send(('step', mine))
        if not self.pipe.poll(TIME):
            raise TimeoutError('the other host')
        kind, theirs = self.pipe.recv()
        if kind == 'end':
            self.ended = theirs
            raise ConnectionAbortedError('the other host failed')
        return theirs

    def finish(self, mine):
        """How the test ended there, whatever was left to be said."""
        self.pipe.send(('end', mine))
        while self.ended is None:
            if not self.pipe.poll(TIME):
                raise TimeoutError('the other host')
            kind, theirs = self.pipe.recv()
            if kind == 'end':
                self.ended = theirs
        return self.ended

    def gid_of(self, dgid):
        return GID(self.gid) if self.gid else dgid

    def is_other(self, player):
        return any(player is other for other in self.others)

    def is_others_cq(self, cq):
        return any(cq is other.cq for other in self.others)

    def describe(self, player):
        mr, srq = getattr(player, 'mr', None), getattr(player, 'srq', None)
        return {
            'psns': list(player.psns),
            'qps': list(player.qps_num),
            'mr': mr and {'rkey': mr.rkey, 'buf': mr.buf},
            'srqn': self.number_of(srq),
            'gid': player.ctx.query_gid(player.ib_port,
                                        player.gid_index).gid,
        }

    @staticmethod
    def number_of(srq):
        try:
            return srq.get_srq_num()
        except Exception:  # none, or not of XRC
            return None

    def meet(self, player):
        """A player was made: both are described, the real one is believed."""
        is_real = (self.made % 2 == 0) == self.first
        self.made += 1
        theirs = self.swap(self.describe(player))
        self.gid = theirs['gid']
        if is_real:
            return
        self.others.append(player)
        player.psns[:] = theirs['psns']
        player.qps_num[:] = theirs['qps']
        if theirs['mr']:
            player.mr = Other(player.mr, **theirs['mr'])
        if theirs['srqn'] is not None:
            player.srq = Other(player.srq,
                               get_srq_num=lambda: theirs['srqn'])


def after(cls, name, then):
    old = getattr(cls, name)

    def both(self, *args, **kwargs):
        result = old(self, *args, **kwargs)
        then(self)
        return result
    setattr(cls, name, both)


def replace(name, make):
    """For all who have it by its name, but the connection manager's players,
    which are alone in their processes."""
    old = getattr(sys.modules['tests.utils'], name)
    new = make(old)
    for module in list(sys.modules.values()):
        if getattr(module, '__name__', '').startswith('tests.') and \
           'rdmacm' not in module.__name__ and \
           getattr(module, name, None) is old:
            setattr(module, name, new)


def in_step(step):
    """Replaces what the suite's tests call on a player."""
    base = sys.modules['tests.base']
    after(base.TrafficResources, '__init__', step.meet)

    def posts(old):
        def post(player, *args, **kwargs):
            step.swap('post')  # what was written before is written
            if not step.is_other(player):
                old(player, *args, **kwargs)
        return post

    def polls(old):
        def poll(cq, *args, **kwargs):
            wcs = error = None
            is_other = step.is_others_cq(cq)
            try:
                wcs = None if is_other else old(cq, *args, **kwargs)
            except PyverbsError as e:
                error = e
            # Some tests expect one, on either side.
            theirs = step.swap(error)
            if is_other:
                error = theirs
            if error:
                raise error
            return wcs
        return poll

    def validates(old):
        def validate(received, is_server, *args, **kwargs):
            if bool(is_server) == step.serves:
                old(received, is_server, *args, **kwargs)
            step.swap('validated')
        return validate

    def validates_atomic(old):
        def validate(opcode, *players, **kwargs):
            mine, = (p for p in players if not step.is_other(p))
            other, = (p for p in players if step.is_other(p))
            theirs = step.swap(mine.mr.read(8, 0))
            other.mr.__dict__['read'] = lambda length, offset: theirs
            old(opcode, *players, **kwargs)
        return validate

    def flows(old):
        def flow(client, server, *args, **kwargs):
            step.serves = not step.is_other(server)
            return old(client, server, *args, **kwargs)
        return flow

    def routes(old):
        return lambda dgid=None, **rest: old(dgid=step.gid_of(dgid), **rest)

    def prefetches(old):
        return lambda player, *args, **kwargs: \
            None if step.is_other(player) else old(player, *args, **kwargs)

    for name in ('post_send', 'post_send_ex'):
        replace(name, posts)
    replace('prefetch_mrs', prefetches)
    for name in ('poll_cq', 'poll_cq_ex'):
        replace(name, polls)
    for name in ('traffic', 'rdma_traffic', 'xrc_traffic', 'atomic_traffic'):
        replace(name, flows)
    replace('validate', validates)
    replace('validate_atomic', validates_atomic)
    replace('GlobalRoute', routes)


def active_elsewhere(netns, address):
    """The connection manager's active players are in the other namespace."""
    test = sys.modules['tests.base'].RDMACMBaseTest

    def goes(old):
        def flow(self, *args, passive=None, **kwargs):
            if not passive:
                enter(netns)
                for name in ('tests.base_rdmacm', 'tests.rdmacm_utils'):
                    came_from(sys.modules[name], self.ip_addr, address)
            return old(self, *args, passive=passive, **kwargs)
        return flow

    for name in ('rdmacm_traffic', 'rdmacm_multicast_traffic',
                 'rdmacm_remote_traffic'):
        setattr(test, name, goes(getattr(test, name)))


def came_from(module, here, there):
    def info(src=None, **rest):
        return old(src=there if src == here else src, **rest)
    old = module.AddrInfo
    module.AddrInfo = info


def enter(netns):
    with open(netns, encoding='ascii') as f:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(f.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'setns')


def run(test):
    """How it ended, as a word and a reason."""
    result = unittest.TestResult()
    random.seed(test.id())
    test.run(result)
    if result.skipped:
        return 'skip', result.skipped[0][1]
    for _, trace in result.failures + result.errors:
        return 'fail', trace.strip().splitlines()[-1]
    return 'pass', ''


def run_all(tests, step, out):
    for test in tests:
        step.reset()
        word, why = run(test)
        theirs, their_why = step.finish((word, why))
        if 'fail' in (word, theirs) or word != theirs:
            # The end that failed by itself knows why.
            if 'the other host' in why or word == 'pass':
                why = their_why
            word = 'fail'
        if out:
            print(word, pyverbs_run.name_of(test), ' '.join(why.split()),
                  file=out, flush=True)


def run_alone(tests, out):
    for test in tests:
        word, why = run(test)
        print(word, pyverbs_run.name_of(test), ' '.join(why.split()),
              file=out, flush=True)


def collect(suite, globs):
    sys.path[:0] = [suite, os.path.join(suite, 'tests')]
    importlib.import_module('args_parser').parser.parse_args()
    tests = unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module('tests'))
    return [test for glob in globs for test in pyverbs_run.chosen(tests, glob)]


def main():
    suite, results, netns, address, only = sys.argv[1:6]
    sys.argv[1:] = sys.argv[6:]
    tests = collect(suite, only.split())
    managed = [t for t in tests if 'rdmacm' in t.id()]
    ours, theirs = multiprocessing.Pipe()
    child = os.fork()  # before any device is open
    step = Step(theirs if child == 0 else ours, child != 0)
    if child == 0:
        enter(netns)
    in_step(step)
    rest = [t for t in tests if t not in managed]
    if child == 0:
        run_all(rest, step, None)
        os._exit(0)
    with open(results, 'w', encoding='utf-8') as out:
        run_all(rest, step, out)
        active_elsewhere(netns, address)
        run_alone(managed, out)
    os.waitpid(child, 0)


main()
