# SPDX-License-Identifier: BSD-2-Clause
"""Runs rdma-core's pyverbs suite and says, one line each, how its tests ended.

    pyverbs_run.py SUITE RESULTS ONLY OPTION...

SUITE is a directory that holds the package "tests"; ONLY is a list of globs over
names of tests, with spaces between them; the options are the suite's own (--dev, --gid). A line of RESULTS is "pass", "skip" or "fail", the
test's name, and the reason; it is written as the test ends, so that what is
missing when the process dies is what killed it. Reports of failures go to
standard output.
"""
import faulthandler
import fnmatch
import importlib
import os
import sys
import unittest


class Result(unittest.TextTestResult):
    out = None

    def write(self, word, test, why=''):
        name = name_of(test)
        # One line of text, whatever bytes a test has found.
        why = ''.join(c if c.isprintable() else '?' for c in why)
        print(word, name, ' '.join(why.split()), file=self.out, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write('pass', test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write('skip', test, reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write('fail', test, str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.write('fail', test, str(err[1]))


def name_of(test):
    return test.id().removeprefix('tests.')


def chosen(suite, only):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, only)
        elif any(fnmatch.fnmatch(name_of(test), glob)
                 for glob in only.split()):
            yield test


def main():
    suite, results, only = sys.argv[1:4]
    sys.argv[1:] = sys.argv[4:]
    faulthandler.enable()
    # The package looks for its own modules here, with and without its name.
    sys.path[:0] = [suite, os.path.join(suite, 'tests')]
    importlib.import_module('args_parser').parser.parse_args()
    tests = unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module('tests'))
    with open(results, 'w', encoding='utf-8') as Result.out:
        unittest.TextTestRunner(stream=sys.stdout,
                                resultclass=Result).run(
                                    unittest.TestSuite(chosen(tests, only)))


if __name__ == '__main__':
    main()
