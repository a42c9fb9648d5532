#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compare the files that a message passes with the list in docs/TOUR.md.

    tests/programs/way.py "WAY" CALLGRIND_OUTPUT...

The outputs are callgrind's, collected while MESSAGES messages were on that way.
A file counts when a function of it ran for at least half of them (a busy machine
makes a requester probe now and then), if it is a .c file of a room above wire.
What is inline in a header belongs to the file that calls it, and base and wire
only compute (copies, CRC, headers). The list is the numbered one below the line
**WAY** of docs/TOUR.md. One line for each difference, and for a way that is
longer than MOST; the exit status is 1 when there is one.
"""
import collections
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
TOUR = os.path.join(TOP, 'docs', 'TOUR.md')
MESSAGES = 16  # tests/programs/way_test.c
MOST = 6
TOOLS = ('base/', 'wire/')
NAME = re.compile(r'(c?)(fl|fi|fe|fn)=\((\d+)\)(?: (.*))?$')


class Output:
    """One output of callgrind: which function ran in which file, how often it
    was called. Functions where collecting began have no caller."""

    def __init__(self, path):
        self.names = {}
        self.ran = set()
        self.calls = collections.Counter()
        with open(path, encoding='utf-8', errors='replace') as f:
            self.read(f)

    def name(self, kind, number, text):
        key = ('fn' if kind == 'fn' else 'fl', number)
        if text is not None:
            self.names[key] = text
        return self.names[key]

    def read(self, lines):
        function = callee = file = None
        of_callee = False
        for line in lines:
            line = line.rstrip('\n')
            name = NAME.match(line)
            if name:
                called, kind, number, text = name.groups()
                text = self.name(kind, number, text)
                if called and kind == 'fn':
                    callee = text
                elif kind == 'fn':
                    function = text
                elif not called:
                    file = text
            elif line.startswith('calls='):
                self.calls[callee] += int(line[6:].split()[0])
                of_callee = True  # the next line is what the callee cost
            elif re.match(r'[+\-*\d]\S* \d+$', line):
                if not of_callee:
                    self.ran.add((function, file))
                of_callee = False

    def files(self):
        """Those in which functions ran often."""
        for function, file in self.ran:
            if self.calls.get(function, MESSAGES) >= MESSAGES // 2:
                yield file


def in_tree(path):
    """The file's name from the top of the tree; None: it is not of this tree. A
    compiler's cache keeps the directory where the object was first made, so what
    counts is the longest end of the path that names a file here."""
    parts = os.path.normpath(path).strip('/').split('/')
    for start in range(len(parts)):
        name = '/'.join(parts[start:])
        if os.path.isfile(os.path.join(TOP, name)):
            return name
    return None


def of_tree(paths):
    """The .c and .S files of the rooms, from the top of the tree."""
    for path in map(in_tree, paths):
        if path and path.endswith(('.c', '.S')) and \
                not path.startswith(('bench/', 'tests/')):
            yield path


def listed(way):
    """The files of the numbered list below **way**; None: there is none."""
    found = None
    with open(TOUR, encoding='utf-8') as f:
        for line in f:
            if found is None:
                if line.startswith(f'**{way}**'):
                    found = []
            elif re.match(r'\d+\. ', line):
                found.append(re.search(r'`([^`:]+)', line)[1])
            elif found and line.strip() and not line.startswith(' '):
                break
    return found


def findings(way, ran, says):
    if says is None:
        yield f'docs/TOUR.md has no way "{way}"'
        says = []
    if not ran:
        yield f'{way}: nothing ran'
    for name in sorted(ran - set(says)):
        yield f'{way}: it passes {name}, and docs/TOUR.md does not say so'
    for name in sorted(set(says) - ran):
        yield f'{way}: it does not pass {name}, as docs/TOUR.md says'
    if len(ran) > MOST:
        yield f'{way}: it passes {len(ran)} files, {MOST} at most'


def main(way, outputs):
    every = set(of_tree(f for o in outputs for f in Output(o).files()))
    ran = {name for name in every if not name.startswith(TOOLS)}
    found = list(findings(way, ran, listed(way)))
    print('\n'.join(found or [f'{len(ran)} files, {MOST} at most']))
    print('# ' + ' '.join(sorted(ran)))
    print('# and ' + ' '.join(sorted(every - ran)))
    return bool(found)


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
